// SPDX-License-Identifier: GPL-2.0
/*
 * Takes back commit dd8657b6c1cb (v5.8, "mm: memcontrol: optimize memory.numa_stat like
 * memory.stat") in a running 5.10, as a live patch: the sums of the subtree in memory.numa_stat are
 * counted again by walking every memory cgroup below, dead ones included, once per line and once
 * per line and node. The functions below are those of mm/memcontrol.c before that commit.
 */
#include <linux/kprobes.h>
#include <linux/livepatch.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/seq_file.h>

/* Not exported to modules: looked up when the patch is loaded. */
static struct mem_cgroup *(*iter_step)(struct mem_cgroup *, struct mem_cgroup *,
				       struct mem_cgroup_reclaim_cookie *);

#define for_each_mem_cgroup_tree(iter, root) \
	for (iter = iter_step(root, NULL, NULL); iter != NULL; \
	     iter = iter_step(root, iter, NULL))

/* lruvec_page_state_local() but for a disabled controller, whose counters are not exported. */
static inline unsigned long node_state_local(struct mem_cgroup_per_node *pn,
					     enum node_stat_item idx)
{
	long x = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		x += per_cpu(pn->lruvec_stat_local->count[idx], cpu);
	return x < 0 ? 0 : x;
}

static noinline unsigned long mem_cgroup_node_nr_lru_pages(struct mem_cgroup *memcg, int nid,
							   unsigned int lru_mask)
{
	struct mem_cgroup_per_node *pn = mem_cgroup_nodeinfo(memcg, nid);
	unsigned long nr = 0;
	enum lru_list lru;

	for_each_lru(lru) {
		if (!(BIT(lru) & lru_mask))
			continue;
		nr += node_state_local(pn, NR_LRU_BASE + lru);
	}
	return nr;
}

static noinline unsigned long mem_cgroup_nr_lru_pages(struct mem_cgroup *memcg,
						      unsigned int lru_mask)
{
	unsigned long nr = 0;
	enum lru_list lru;

	for_each_lru(lru) {
		if (!(BIT(lru) & lru_mask))
			continue;
		nr += memcg_page_state_local(memcg, NR_LRU_BASE + lru);
	}
	return nr;
}

#define LRU_ALL_FILE (BIT(LRU_INACTIVE_FILE) | BIT(LRU_ACTIVE_FILE))
#define LRU_ALL_ANON (BIT(LRU_INACTIVE_ANON) | BIT(LRU_ACTIVE_ANON))
#define LRU_ALL ((1 << NR_LRU_LISTS) - 1)

static int memcg_numa_stat_show(struct seq_file *m, void *v)
{
	struct numa_stat {
		const char *name;
		unsigned int lru_mask;
	};

	static const struct numa_stat stats[] = {
		{ "total", LRU_ALL },
		{ "file", LRU_ALL_FILE },
		{ "anon", LRU_ALL_ANON },
		{ "unevictable", BIT(LRU_UNEVICTABLE) },
	};
	const struct numa_stat *stat;
	int nid;
	unsigned long nr;
	struct mem_cgroup *memcg = mem_cgroup_from_seq(m);

	for (stat = stats; stat < stats + ARRAY_SIZE(stats); stat++) {
		nr = mem_cgroup_nr_lru_pages(memcg, stat->lru_mask);
		seq_printf(m, "%s=%lu", stat->name, nr);
		for_each_node_state(nid, N_MEMORY) {
			nr = mem_cgroup_node_nr_lru_pages(memcg, nid, stat->lru_mask);
			seq_printf(m, " N%d=%lu", nid, nr);
		}
		seq_putc(m, '\n');
	}

	for (stat = stats; stat < stats + ARRAY_SIZE(stats); stat++) {
		struct mem_cgroup *iter;

		nr = 0;
		for_each_mem_cgroup_tree(iter, memcg)
			nr += mem_cgroup_nr_lru_pages(iter, stat->lru_mask);
		seq_printf(m, "hierarchical_%s=%lu", stat->name, nr);
		for_each_node_state(nid, N_MEMORY) {
			nr = 0;
			for_each_mem_cgroup_tree(iter, memcg)
				nr += mem_cgroup_node_nr_lru_pages(iter, nid, stat->lru_mask);
			seq_printf(m, " N%d=%lu", nid, nr);
		}
		seq_putc(m, '\n');
	}

	return 0;
}

static struct klp_func functions[] = {
	{ .old_name = "memcg_numa_stat_show", .new_func = memcg_numa_stat_show },
	{ }
};

static struct klp_object objects[] = { { .funcs = functions }, { } };

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

static int __init walk_init(void)
{
	struct kprobe probe = { .symbol_name = "mem_cgroup_iter" };
	int error = register_kprobe(&probe);

	if (error)
		return error;
	iter_step = (void *)probe.addr;
	unregister_kprobe(&probe);
	return klp_enable_patch(&patch);
}

static void __exit walk_exit(void)
{
}

module_init(walk_init);
module_exit(walk_exit);
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
MODULE_DESCRIPTION("memory.numa_stat walks every memory cgroup again, as before Linux 5.8");
