// SPDX-License-Identifier: GPL-2.0
/* The switches of a PF in debugfs, and their effect on its calls. */
#include <linux/delay.h>
#include <linux/seq_file.h>

#include "lab.h"

static const char *const call_names[LAB_CALLS] = { "enable", "disable", "remove", "netlink" };

/* Not inlined, so that /proc/PID/wchan names it. No signal ends it, not even SIGKILL. */
static noinline void lab_hang(struct lab_trouble *trouble)
{
	trouble->hanging++;
	wait_event(trouble->released, !READ_ONCE(trouble->hang));
	trouble->hanging--;
}

int lab_meet_trouble(struct lab_pf *pf, enum lab_call call)
{
	struct lab_trouble *trouble = &pf->trouble[call];

	if (trouble->delay_ms)
		msleep(trouble->delay_ms);
	lab_hang(trouble);
	return -(int)trouble->errno;
}

static int hang_get(void *data, u64 *value)
{
	*value = ((struct lab_trouble *)data)->hang;
	return 0;
}

static int hang_set(void *data, u64 value)
{
	struct lab_trouble *trouble = data;

	WRITE_ONCE(trouble->hang, !!value);
	wake_up_all(&trouble->released);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(hang_fops, hang_get, hang_set, "%llu\n");

static int guids_show(struct seq_file *file, void *unused)
{
	struct lab_pf *pf = file->private;
	int vf;

	mutex_lock(&pf->lock);
	for (vf = 0; vf < pci_sriov_get_totalvfs(pf->pdev); vf++) {
		struct lab_vf *now = &pf->vfs[vf];

		if (now->node.valid || now->port.valid)
			seq_printf(file, "%d %016llx %016llx\n", vf, now->node.value,
				   now->port.value);
	}
	mutex_unlock(&pf->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(guids);

void lab_add_switches(struct lab_pf *pf, struct dentry *root)
{
	int call;

	pf->folder = debugfs_create_dir(pci_name(pf->pdev), root);
	debugfs_create_u32("vfs_max", 0600, pf->folder, &pf->vfs_max);
	debugfs_create_file("kept_guids", 0400, pf->folder, pf, &guids_fops);
	for (call = 0; call < LAB_CALLS; call++) {
		struct lab_trouble *trouble = &pf->trouble[call];
		struct dentry *folder = debugfs_create_dir(call_names[call], pf->folder);

		init_waitqueue_head(&trouble->released);
		debugfs_create_u32("delay_ms", 0600, folder, &trouble->delay_ms);
		debugfs_create_file_unsafe("hang", 0600, folder, trouble, &hang_fops);
		debugfs_create_u32("hanging", 0400, folder, &trouble->hanging);
		if (call != LAB_REMOVE) /* which can't fail: it returns nothing */
			debugfs_create_u32("errno", 0600, folder, &trouble->errno);
	}
}
