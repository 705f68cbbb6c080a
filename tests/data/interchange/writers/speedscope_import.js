// Imports FILE with speedscope's own importer (the npm package's bundle, NODE_MODULES/speedscope) and prints what it found.
// With the package's JSON schema the file is validated too, by ajv.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [modules, file] = process.argv.slice(2);
const release = path.join(modules, "speedscope/dist/release");
const bundle = (name) => fs.readFileSync(path.join(release, fs.readdirSync(release).find((f) => f.startsWith(name) && f.endsWith(".js"))), "utf8");

// The bundle's first part draws the page as soon as it is loaded: without a document it fails, but only after it has
// registered its modules, which is all the importer needs.
const quiet = { log() {}, warn() {}, error() {} };
const world = { console: quiet, self: {}, TextDecoder, setTimeout, URL, atob, btoa, performance };
world.global = world;
const context = vm.createContext(world);
for (const name of ["speedscope", "import"]) {
  try {
    vm.runInContext(bundle(name), context);
  } catch (error) {
    if (name === "import") throw error;
  }
}
const registered = world.parcelRequire;
const importer = registered(Object.keys(registered.modules).find((id) => String(registered.modules[id][0]).includes("exports.importProfileGroupFromText=")));

function summary(profile) {
  const frames = {};
  profile.forEachFrame((frame) => (frames[frame.name] = (frames[frame.name] || 0) + frame.getTotalWeight()));
  return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames };
}

function schemaErrors(content) {
  const Ajv = require(path.join(modules, "ajv"));
  const schema = JSON.parse(fs.readFileSync(path.join(release, "file-format-schema.json"), "utf8"));
  const validate = new Ajv({ strict: false }).compile(schema);
  return validate(JSON.parse(content)) ? [] : validate.errors;
}

const content = fs.readFileSync(file);
importer.importProfileGroupFromBase64(path.basename(file), content.toString("base64")).then((group) => {
  const errors = file.endsWith(".speedscope.json") ? schemaErrors(content.toString()) : [];
  console.log(JSON.stringify({ name: group.name, active: group.indexToView, errors, profiles: group.profiles.map(summary) }));
});
