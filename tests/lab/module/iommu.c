// SPDX-License-Identifier: GPL-2.0
/*
 * An IOMMU without translation: each VF of the lab's PFs gets its own group, so that VFIO accepts
 * it. For a host with more VFs than QEMU supports behind an emulated IOMMU. VFIO gets no domain for
 * a guest's memory, so no VM can be started with such a VF.
 *
 * An IOMMU driver can't be unregistered, so this module can't be unloaded.
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

static struct iommu_device lab_iommu;

static bool lab_capable(struct device *dev, enum iommu_cap cap)
{
	return cap == IOMMU_CAP_CACHE_COHERENCY; /* what VFIO asks for */
}

static int lab_def_domain_type(struct device *dev)
{
	return IOMMU_DOMAIN_IDENTITY;
}

static struct iommu_domain *lab_domain_alloc(unsigned int type)
{
	if (type != IOMMU_DOMAIN_IDENTITY)
		return NULL;
	return kzalloc(sizeof(struct iommu_domain), GFP_KERNEL);
}

static void lab_domain_free(struct iommu_domain *domain)
{
	kfree(domain);
}

static int lab_attach_dev(struct iommu_domain *domain, struct device *dev)
{
	return 0;
}

static struct iommu_device *lab_probe_device(struct device *dev)
{
	struct pci_dev *pdev = dev_is_pci(dev) ? to_pci_dev(dev) : NULL;
	struct pci_driver *driver;

	if (!pdev || !pdev->is_virtfn)
		return ERR_PTR(-ENODEV);
	driver = pci_dev_driver(pci_physfn(pdev));
	if (!driver || strcmp(driver->name, "vfmgr_lab_pf"))
		return ERR_PTR(-ENODEV);
	return &lab_iommu;
}

static void lab_release_device(struct device *dev)
{
}

static const struct iommu_domain_ops lab_domain_ops = {
	.attach_dev = lab_attach_dev,
	.free = lab_domain_free,
};

static const struct iommu_ops lab_ops = {
	.capable = lab_capable,
	.domain_alloc = lab_domain_alloc,
	.def_domain_type = lab_def_domain_type,
	.probe_device = lab_probe_device,
	.release_device = lab_release_device,
	.device_group = generic_device_group,
	.default_domain_ops = &lab_domain_ops,
	.pgsize_bitmap = PAGE_SIZE,
	.owner = THIS_MODULE,
};

static int __init lab_iommu_init(void)
{
	int err = iommu_device_sysfs_add(&lab_iommu, NULL, NULL, "vfmgr-lab");

	if (err)
		return err;
	err = iommu_device_register(&lab_iommu, &lab_ops, NULL);
	if (err)
		iommu_device_sysfs_remove(&lab_iommu);
	return err;
}

module_init(lab_iommu_init);
MODULE_DESCRIPTION("vfmgr's lab: IOMMU groups without an IOMMU");
MODULE_LICENSE("GPL");
