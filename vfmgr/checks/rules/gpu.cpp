// SPDX-License-Identifier: Apache-2.0
// GPUDirect RDMA: NVIDIA's driver, the two ways from a GPU's memory to a NIC, and the place of
// both. Only CUDA's attributes show whether a GPU offers it, and no file does: a GeForce does not,
// a limit of the product and no fault of the machine (guest-tools/gpu/GPUDIRECT.md#geforce).
#include "vfmgr/checks/rules/gpu.hpp"

#include <array>

#include "vfmgr/checks/rule.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::array gpu{
    Rule{"gpu.driver", "The GPUs are bound to NVIDIA's driver",
         "NVIDIA driver README, /proc/driver/nvidia; recordings of driver logs", AppliesTo::both,
         judge_gpu_driver},
    Rule{"gpu.install_order", "nvidia-peermem was built against the OFED of this machine",
         "open-gpu-kernel-modules nvidia-peermem.c and conftest.sh; setup guide, Installation "
         "Order; Holoscan guide; a recording of a symbol's other version",
         AppliesTo::both, judge_install_order},
    Rule{"gpu.peermem", "nvidia-peermem is loaded where it is needed",
         "open-gpu-kernel-modules nvidia-peermem.c; gpu-operator issue 2868; setup guide, "
         "nvidia-peermem Won't Load",
         AppliesTo::both, judge_peermem},
    Rule{"gpu.dmabuf", "GPU memory can be registered by DMA-BUF",
         "CUDA driver API, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; perftest README; Linux 5.12 "
         "ib_umem_dmabuf",
         AppliesTo::both, judge_gpu_dma_buf},
    Rule{"gpu.nv_peer_mem", "No old nv_peer_mem is left",
         "NVIDIA GPUDirect RDMA, nvidia-peermem; setup guide, Install nvidia-peermem",
         AppliesTo::both, judge_nv_peer_mem},
    Rule{"gpu.peermem_at_boot", "nvidia-peermem is also loaded at boot",
         "modules-load.d(5); setup guide and Holoscan guide", AppliesTo::both,
         judge_peermem_at_boot},
    Rule{"gpu.bar1", "The GPU's BAR1 is large enough",
         "NVIDIA GPUDirect RDMA, BAR sizes; Linux pci-sysfs, resource; nvidia-smi -q recordings",
         AppliesTo::both, judge_bar1},
    Rule{"gpu.topology", "Each GPU has a NIC near it",
         "NCCL topology; rdma-core rdma_topo; nvidia-smi topo recordings", AppliesTo::both,
         judge_gpu_topology},
    Rule{"gpu.igpu", "An integrated GPU has nvidia-p2p", "Holoscan guide, Enabling GPUDirect RDMA",
         AppliesTo::both, judge_igpu},
};

}  // namespace

std::span<Rule const> gpu_rules() {
    return gpu;
}

}  // namespace vfmgr::checks
