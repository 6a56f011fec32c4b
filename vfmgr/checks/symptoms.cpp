// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/doctor.hpp"

namespace vfmgr::checks {

std::vector<Symptom> const& all_symptoms() {
    static std::vector<Symptom> const all{
        {"no-vfs",
         "VFs are not created",
         AppliesTo::host,
         {"sriov.firmware", "sriov.capable", "sriov.resources", "sriov.owner", "cpu.virtualisation",
          "iommu.enabled"}},
        {"vm-no-vf",
         "the VM can't see the VF",
         AppliesTo::host,
         {"cpu.virtualisation", "iommu.enabled", "iommu.interrupt_remapping", "sriov.capable",
          "sriov.resources", "iommu.groups", "pci.acs", "vfio.modules", "sriov.vf_driver",
          "libvirt.unit", "libvirt.version", "sriov.owner"}},
        {"rdma-fails",
         "RDMA connections fail",
         AppliesTo::both,
         {"stack.secure_boot", "stack.driver", "stack.core", "stack.symbols", "stack.ofed",
          "port.link_layer", "port.pf_down", "port.state", "port.cable", "port.subnet_manager",
          "soft_rdma.link", "port.gids", "port.mtu", "memory.locked", "qos.pfc", "port.counters",
          "log.mlx5", "log.iommu_fault"}},
        {"softroce",
         "SoftRoCE is not working",
         AppliesTo::both,
         {"soft_rdma.module", "soft_rdma.link", "port.gids", "soft_rdma.parameters",
          "soft_rdma.siw", "soft_rdma.persistence", "soft_rdma.exposed"}},
        {"vf-slow",
         "the VF is slow",
         AppliesTo::both,
         {"pci.link", "port.speed", "port.mtu", "port.cable", "qos.pfc", "qos.dscp",
          "port.counters", "memory.numa", "gpu.topology", "log.mlx5"}},
        {"peermem-wont-load",
         "nvidia-peermem won't load",
         AppliesTo::both,
         {"stack.secure_boot", "stack.dkms", "gpu.driver", "gpu.install_order", "gpu.peermem",
          "gpu.dmabuf", "gpu.nv_peer_mem", "gpu.peermem_at_boot", "log.peermem"}},
    };
    return all;
}

}  // namespace vfmgr::checks
