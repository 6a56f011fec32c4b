// SPDX-License-Identifier: GPL-2.0
/*
 * Two PCI drivers without ids, bound by driver_override: vfmgr_lab_pf, and vfmgr_lab_vf for a VF,
 * which reads its addresses only when it probes, as a guest's driver does.
 */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "lab.h"

static struct dentry *lab_root;
static bool lab_infiniband; /* for the PFs that are bound from now on */

/* The PCI core requires a table; only a driver_override matches this one. */
static const struct pci_device_id lab_no_ids[] = { {} };

static int lab_enable(struct lab_pf *pf, int count)
{
	int err = lab_meet_trouble(pf, LAB_ENABLE);

	if (err)
		return err;
	if (pf->vfs_max)
		count = min_t(int, count, pf->vfs_max);
	err = pci_enable_sriov(pf->pdev, count);
	return err ? err : count;
}

static int lab_disable(struct lab_pf *pf)
{
	int err = lab_meet_trouble(pf, LAB_DISABLE);

	if (err)
		return err;
	pci_disable_sriov(pf->pdev);
	mutex_lock(&pf->lock);
	lab_forget_ethernet(pf);
	mutex_unlock(&pf->lock);
	return 0;
}

static int lab_sriov_configure(struct pci_dev *pdev, int count)
{
	struct lab_pf *pf = pci_get_drvdata(pdev);

	return count ? lab_enable(pf, count) : lab_disable(pf);
}

static int lab_pf_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct lab_pf *pf;
	int err = pci_enable_device_mem(pdev);

	if (err)
		return err;
	pf = lab_alloc_pf(pdev, lab_infiniband);
	if (!pf) {
		err = -ENOMEM;
		goto disable;
	}
	pci_set_master(pdev);
	pci_set_drvdata(pdev, pf);
	lab_add_switches(pf, lab_root);
	err = register_netdev(pf->netdev);
	if (err)
		goto free;
	return 0;

free:
	debugfs_remove_recursive(pf->folder);
	lab_free_pf(pf);
disable:
	pci_disable_device(pdev);
	return err;
}

static void lab_pf_remove(struct pci_dev *pdev)
{
	struct lab_pf *pf = pci_get_drvdata(pdev);

	lab_meet_trouble(pf, LAB_REMOVE);
	pci_disable_sriov(pdev);
	unregister_netdev(pf->netdev);
	debugfs_remove_recursive(pf->folder);
	pci_disable_device(pdev);
	lab_free_pf(pf);
}

static struct pci_driver lab_pf_driver = {
	.name = "vfmgr_lab_pf",
	.id_table = lab_no_ids,
	.probe = lab_pf_probe,
	.remove = lab_pf_remove,
	.sriov_configure = lab_sriov_configure,
};

/* What a VF read when it was probed. */
struct lab_seen {
	struct dentry *file;
	u64 node_guid, port_guid;
	u8 mac[ETH_ALEN];
};

static int seen_show(struct seq_file *file, void *unused)
{
	struct lab_seen *seen = file->private;

	seq_printf(file, "mac %pM\nnode_guid %016llx\nport_guid %016llx\n", seen->mac,
		   seen->node_guid, seen->port_guid);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(seen);

static int lab_vf_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct lab_pf *pf = pci_iov_get_pf_drvdata(pdev, &lab_pf_driver);
	int vf = pci_iov_vf_id(pdev);
	struct lab_seen *seen;

	if (IS_ERR(pf))
		return PTR_ERR(pf);
	seen = devm_kzalloc(&pdev->dev, sizeof(*seen), GFP_KERNEL);
	if (!seen)
		return -ENOMEM;
	mutex_lock(&pf->lock);
	seen->node_guid = lab_guid_in_force(pf, &pf->vfs[vf].node, vf);
	seen->port_guid = lab_guid_in_force(pf, &pf->vfs[vf].port, vf);
	memcpy(seen->mac, pf->vfs[vf].mac, ETH_ALEN);
	mutex_unlock(&pf->lock);
	seen->file = debugfs_create_file(pci_name(pdev), 0400, lab_root, seen, &seen_fops);
	pci_set_drvdata(pdev, seen);
	return 0;
}

static void lab_vf_remove(struct pci_dev *pdev)
{
	struct lab_seen *seen = pci_get_drvdata(pdev);

	debugfs_remove(seen->file);
}

static struct pci_driver lab_vf_driver = {
	.name = "vfmgr_lab_vf",
	.id_table = lab_no_ids,
	.probe = lab_vf_probe,
	.remove = lab_vf_remove,
};

static int __init lab_init(void)
{
	int err;

	lab_root = debugfs_create_dir("vfmgr_lab", NULL);
	debugfs_create_bool("infiniband", 0600, lab_root, &lab_infiniband);
	err = pci_register_driver(&lab_pf_driver);
	if (err)
		goto remove_root;
	err = pci_register_driver(&lab_vf_driver);
	if (err)
		goto unregister_pf;
	return 0;

unregister_pf:
	pci_unregister_driver(&lab_pf_driver);
remove_root:
	debugfs_remove_recursive(lab_root);
	return err;
}

static void __exit lab_exit(void)
{
	pci_unregister_driver(&lab_vf_driver);
	pci_unregister_driver(&lab_pf_driver);
	debugfs_remove_recursive(lab_root);
}

module_init(lab_init);
module_exit(lab_exit);
MODULE_DESCRIPTION("vfmgr's lab: a NIC with VF GUIDs, and with trouble on demand");
MODULE_LICENSE("GPL");
