// SPDX-License-Identifier: GPL-2.0
/*
 * The PF's network device, of one of two kinds: Ethernet, or like IPoIB on mlx5. The latter has
 * only GUIDs and link states, and reports the PF's own address as the MAC of every VF.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/if_vlan.h>

#include "lab.h"

#define GUID_LENGTH 8
#define IPOIB_LENGTH 20 /* queue pair, subnet prefix, port GUID */

static netdev_tx_t lab_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

/* Returns the VF with the lock held, after the faults that are set for the operation. */
static struct lab_vf *lab_begin_set(struct net_device *dev, int vf)
{
	struct lab_pf *pf = netdev_priv(dev);
	int err;

	if (vf < 0 || vf >= pci_num_vf(pf->pdev))
		return ERR_PTR(-EINVAL);
	err = lab_meet_trouble(pf, LAB_NETLINK);
	if (err)
		return ERR_PTR(err);
	mutex_lock(&pf->lock);
	return &pf->vfs[vf];
}

static int lab_end_set(struct net_device *dev, struct lab_vf *to)
{
	struct lab_pf *pf = netdev_priv(dev);

	if (IS_ERR(to))
		return PTR_ERR(to);
	mutex_unlock(&pf->lock);
	return 0;
}

static int lab_set_vf_mac(struct net_device *dev, int vf, u8 *mac)
{
	struct lab_vf *to = lab_begin_set(dev, vf);

	if (!IS_ERR(to))
		ether_addr_copy(to->mac, mac);
	return lab_end_set(dev, to);
}

static int lab_set_vf_vlan(struct net_device *dev, int vf, u16 vlan, u8 qos, __be16 proto)
{
	struct lab_vf *to;

	if (proto != htons(ETH_P_8021Q))
		return -EPROTONOSUPPORT;
	to = lab_begin_set(dev, vf);
	if (!IS_ERR(to)) {
		to->vlan = vlan;
		to->qos = qos;
	}
	return lab_end_set(dev, to);
}

static int lab_set_vf_rate(struct net_device *dev, int vf, int min_rate, int max_rate)
{
	struct lab_vf *to = lab_begin_set(dev, vf);

	if (!IS_ERR(to)) {
		to->min_tx_rate = min_rate;
		to->max_tx_rate = max_rate;
	}
	return lab_end_set(dev, to);
}

static int lab_set_vf_spoofchk(struct net_device *dev, int vf, bool on)
{
	struct lab_vf *to = lab_begin_set(dev, vf);

	if (!IS_ERR(to))
		to->spoofchk = on;
	return lab_end_set(dev, to);
}

static int lab_set_vf_trust(struct net_device *dev, int vf, bool on)
{
	struct lab_vf *to = lab_begin_set(dev, vf);

	if (!IS_ERR(to))
		to->trust = on;
	return lab_end_set(dev, to);
}

static int lab_set_vf_link_state(struct net_device *dev, int vf, int state)
{
	struct lab_vf *to = lab_begin_set(dev, vf);

	if (!IS_ERR(to))
		to->link_state = state;
	return lab_end_set(dev, to);
}

static int lab_set_vf_guid(struct net_device *dev, int vf, u64 guid, int type)
{
	struct lab_vf *to = lab_begin_set(dev, vf);
	struct lab_guid set = { guid, true };

	if (!IS_ERR(to))
		*(type == IFLA_VF_IB_NODE_GUID ? &to->node : &to->port) = set;
	return lab_end_set(dev, to);
}

/* Only GUIDs that were set: the factory's shows only in the VF. */
static int lab_get_vf_guid(struct net_device *dev, int vf, struct ifla_vf_guid *node,
			   struct ifla_vf_guid *port)
{
	struct lab_pf *pf = netdev_priv(dev);

	if (vf >= pci_num_vf(pf->pdev))
		return -EINVAL;
	node->guid = pf->vfs[vf].node.value;
	port->guid = pf->vfs[vf].port.value;
	return 0;
}

static int lab_get_vf_config(struct net_device *dev, int vf, struct ifla_vf_info *info)
{
	struct lab_pf *pf = netdev_priv(dev);
	struct lab_vf *now = &pf->vfs[vf];

	if (vf >= pci_num_vf(pf->pdev))
		return -EINVAL;
	info->vf = vf;
	info->linkstate = now->link_state;
	if (pf->infiniband) {
		/* ib_get_vf_config() clears all that an Ethernet driver does not fill in. */
		info->spoofchk = 0;
		info->rss_query_en = 0;
		info->trusted = 0;
		memcpy(info->mac, dev->dev_addr, dev->addr_len);
		return 0;
	}
	ether_addr_copy(info->mac, now->mac);
	info->vlan = now->vlan;
	info->qos = now->qos;
	info->vlan_proto = htons(ETH_P_8021Q);
	info->min_tx_rate = now->min_tx_rate;
	info->max_tx_rate = now->max_tx_rate;
	info->spoofchk = now->spoofchk;
	info->trusted = now->trust;
	return 0;
}

/* Numbers that differ between VFs and between counters. */
static int lab_get_vf_stats(struct net_device *dev, int vf, struct ifla_vf_stats *stats)
{
	*stats = (struct ifla_vf_stats){
		.rx_packets = 100 + vf,
		.tx_packets = 200 + vf,
		.rx_bytes = 10000 + vf,
		.tx_bytes = 20000 + vf,
		.rx_dropped = 300 + vf,
		.tx_dropped = 400 + vf,
		.multicast = 500 + vf,
		.broadcast = 600 + vf,
	};
	return 0;
}

static const struct net_device_ops ethernet_ops = {
	.ndo_start_xmit = lab_xmit,
	.ndo_set_vf_mac = lab_set_vf_mac,
	.ndo_set_vf_vlan = lab_set_vf_vlan,
	.ndo_set_vf_rate = lab_set_vf_rate,
	.ndo_set_vf_spoofchk = lab_set_vf_spoofchk,
	.ndo_set_vf_trust = lab_set_vf_trust,
	.ndo_set_vf_link_state = lab_set_vf_link_state,
	.ndo_get_vf_config = lab_get_vf_config,
	.ndo_get_vf_stats = lab_get_vf_stats,
};

static const struct net_device_ops infiniband_ops = {
	.ndo_start_xmit = lab_xmit,
	.ndo_set_vf_link_state = lab_set_vf_link_state,
	.ndo_set_vf_guid = lab_set_vf_guid,
	.ndo_get_vf_guid = lab_get_vf_guid,
	.ndo_get_vf_config = lab_get_vf_config,
	.ndo_get_vf_stats = lab_get_vf_stats,
};

static void lab_setup_ethernet(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &ethernet_ops;
}

static void lab_setup_infiniband(struct net_device *dev)
{
	dev->netdev_ops = &infiniband_ops;
	dev->type = ARPHRD_INFINIBAND;
	dev->addr_len = IPOIB_LENGTH;
	dev->mtu = 2044;
	dev->max_mtu = 65520;
	dev->flags = IFF_BROADCAST | IFF_MULTICAST;
	memset(dev->broadcast, 0xff, dev->addr_len);
}

/* The factory's value, with other bits than any that vfmgr chooses. */
static u64 lab_factory_guid(struct lab_pf *pf, int vf)
{
	return 0x00a0c90000000000ull | (u64)pci_dev_id(pf->pdev) << 16 | (vf + 1);
}

u64 lab_guid_in_force(struct lab_pf *pf, const struct lab_guid *guid, int vf)
{
	return guid->valid ? guid->value : lab_factory_guid(pf, vf);
}

/* What stays when VFs are removed, as with mlx5: all of InfiniBand's, none of Ethernet's. */
void lab_forget_ethernet(struct lab_pf *pf)
{
	int vf;

	for (vf = 0; vf < pci_sriov_get_totalvfs(pf->pdev) && !pf->infiniband; vf++)
		pf->vfs[vf] = (struct lab_vf){ .spoofchk = true };
}

struct lab_pf *lab_alloc_pf(struct pci_dev *pdev, bool infiniband)
{
	u8 address[IPOIB_LENGTH] = { 0x52, 0x54, 0x4c, 0, pdev->bus->number, pdev->devfn };
	struct net_device *dev =
		alloc_netdev(sizeof(struct lab_pf), infiniband ? "ib%d" : "eth%d", NET_NAME_ENUM,
			     infiniband ? lab_setup_infiniband : lab_setup_ethernet);
	struct lab_pf *pf;
	int vf, total = pci_sriov_get_totalvfs(pdev);

	if (!dev)
		return NULL;
	pf = netdev_priv(dev);
	pf->pdev = pdev;
	pf->netdev = dev;
	pf->infiniband = infiniband;
	mutex_init(&pf->lock);
	pf->vfs = kcalloc(total, sizeof(*pf->vfs), GFP_KERNEL);
	if (!pf->vfs) {
		free_netdev(dev);
		return NULL;
	}
	for (vf = 0; vf < total; vf++)
		pf->vfs[vf].link_state = IFLA_VF_LINK_STATE_DISABLE; /* a new InfiniBand VF's */
	lab_forget_ethernet(pf);
	if (infiniband) {
		__be64 guid = cpu_to_be64(lab_factory_guid(pf, -1));

		address[4] = 0xfe;
		address[5] = 0x80;
		memcpy(address + IPOIB_LENGTH - GUID_LENGTH, &guid, GUID_LENGTH);
	}
	__dev_addr_set(dev, address, dev->addr_len);
	SET_NETDEV_DEV(dev, &pdev->dev);
	return pf;
}

void lab_free_pf(struct lab_pf *pf)
{
	kfree(pf->vfs);
	free_netdev(pf->netdev);
}
