"""The shell of the project: workflows, templates and the release name what exists."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import jinja2
import pytest
import yaml

import necroscope
from necroscope import settings

ROOT = Path(__file__).parents[1]
FILES = [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / ".pre-commit-config.yaml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_yaml_and_names_scripts_and_tests_that_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    assert isinstance(yaml.safe_load(text), dict)
    named = re.findall(r"(?:scripts|tests)/[\w./-]*\w", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_workflows_start_with_the_right_to_read_only() -> None:
    for path in (ROOT / ".github" / "workflows").iterdir():
        assert yaml.safe_load(path.read_text("utf-8"))["permissions"] == {"contents": "read"}


def test_every_long_test_runs_each_night() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text("utf-8"))
    run = {words.split()[0] for words in workflow["jobs"]["run"]["strategy"]["matrix"]["script"]}
    assert {f"scripts/{path.name}" for path in (ROOT / "scripts").glob("test-*")} <= run


def test_the_tests_run_on_every_python_that_the_package_names() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(
        r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert versions[0] == necroscope.__version__
    assert versions == sorted(versions, reverse=True)


def test_scripts_are_executable_and_bash_can_read_them() -> None:
    for path in (ROOT / "scripts").iterdir():
        if path.suffix:
            continue
        assert path.stat().st_mode & 0o111, path.name
        subprocess.run(["bash", "-n", path], check=True)


def test_ansible_and_cloud_init_name_what_the_package_installs() -> None:
    deploy = ROOT / "deploy"
    cloud = (deploy / "cloud-init" / "necroscope.yaml").read_text("utf-8")
    assert cloud.startswith("#cloud-config\n")
    files = {each["path"]: each["content"] for each in yaml.safe_load(cloud)["write_files"]}
    role = deploy / "ansible" / "roles" / "necroscope"
    tasks = yaml.safe_load((role / "tasks" / "main.yml").read_text("utf-8"))
    modules = {name: task for task in tasks for name in task if name.startswith("ansible.")}
    assert {"ansible.builtin.apt", "ansible.builtin.systemd"} <= set(modules)
    unit = (deploy / "necroscope.service").read_text("utf-8")
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    copied = [task.get("ansible.builtin.copy", {}) for task in tasks]
    drop_ins = [
        files["/etc/systemd/system/necroscope.service.d/settings.conf"],
        *(each["content"] for each in copied if each.get("dest", "").endswith("settings.conf")),
    ]
    assert len(drop_ins) == 2
    for drop_in in drop_ins:
        assert f"ExecStart=\nExecStart={start} --settings /etc/necroscope.toml\n" in drop_in


def test_the_settings_that_ansible_writes_are_read(tmp_path: Path) -> None:
    role = ROOT / "deploy" / "ansible" / "roles" / "necroscope"
    environment = jinja2.Environment(trim_blocks=True)
    environment.filters["to_json"] = json.dumps
    template = environment.from_string((role / "templates/necroscope.toml.j2").read_text("utf-8"))
    written = tmp_path / "necroscope.toml"
    written.write_text(
        template.render(necroscope_settings={"hz": 49}, necroscope_labels={"zone": 'a"b'})
    )
    read = settings.read_file(written)
    assert settings.parse(read).hz == 49
    assert tomllib.loads(written.read_text())["labels"] == {"zone": 'a"b'}
