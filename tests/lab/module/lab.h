/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A PF and its VFs that only remember their settings, and fail on demand.
 *
 * It binds any PCI function with SR-IOV (QEMU's nvme, by driver_override), since it only needs VFs
 * that appear and disappear. No emulator has VF GUIDs, or a driver that hangs on demand.
 */
#ifndef VFMGR_LAB_H
#define VFMGR_LAB_H

#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/wait.h>

struct lab_guid {
	u64 value;
	bool valid; /* set here; otherwise the factory's applies, which can't be read */
};

struct lab_vf {
	struct lab_guid node, port;
	int link_state;
	u8 mac[ETH_ALEN];
	u16 vlan;
	u8 qos;
	int min_tx_rate, max_tx_rate;
	bool spoofchk, trust;
};

enum lab_call { LAB_ENABLE, LAB_DISABLE, LAB_REMOVE, LAB_NETLINK, LAB_CALLS };

/* The faults of one kind of call, in this order: it is slow, it hangs, it fails. */
struct lab_trouble {
	u32 delay_ms;
	u32 errno;   /* positive; 0: none */
	u32 hanging; /* how many calls hang now */
	bool hang;
	wait_queue_head_t released;
};

struct lab_pf {
	struct pci_dev *pdev;
	struct net_device *netdev;
	struct dentry *folder;
	struct lab_trouble trouble[LAB_CALLS];
	u32 vfs_max; /* the most that are created; 0: no limit */
	bool infiniband;
	struct mutex lock;  /* guards the VFs' values: VFs probe without the rtnl lock */
	struct lab_vf *vfs; /* totalvfs of them */
};

int lab_meet_trouble(struct lab_pf *pf, enum lab_call call);
void lab_add_switches(struct lab_pf *pf, struct dentry *root);

struct lab_pf *lab_alloc_pf(struct pci_dev *pdev, bool infiniband);
void lab_free_pf(struct lab_pf *pf);
void lab_forget_ethernet(struct lab_pf *pf);
u64 lab_guid_in_force(struct lab_pf *pf, const struct lab_guid *guid, int vf);

#endif
