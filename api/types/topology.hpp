// SPDX-License-Identifier: Apache-2.0
// Where the PCI functions attached to a VM are on its host. In the VM the PCI tree is virtual, so
// only the host knows how far a GPU is from a NIC. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/verification.hpp"

namespace vfmgr {

// What lies between two PCI functions, in the terms of `nvidia-smi topo` (and NCCL's), nearest
// last. In a VM the PCI tree is virtual; there the value is what NCCL assumes.
enum class PciDistance {
    unknown,
    sys,   // the link between NUMA nodes
    node,  // host bridges of one NUMA node
    phb,   // one host bridge
    pxb,   // several PCI switches, and no host bridge
    pix,   // one PCI switch at most
};
template <>
inline constexpr std::array<EnumName<PciDistance>, 6> enum_names<PciDistance> = {
    {{PciDistance::unknown, "unknown"},
     {PciDistance::sys, "SYS"},
     {PciDistance::node, "NODE"},
     {PciDistance::phb, "PHB"},
     {PciDistance::pxb, "PXB"},
     {PciDistance::pix, "PIX"}}};

// A port or bridge on the path to a function. Unknown ids are 0.
struct PciPort {
    PciAddress address;
    std::uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
    bool operator==(PciPort const&) const = default;
};

struct PciPlace {
    PciAddress address;
    std::vector<PciPort> above;          // from the root down
    std::optional<int> numa_node;        // the node, if it has CPUs; absent: not reported
    std::optional<double> speed_gts;     // GT/s of its link; for a VF, the PF's
    std::optional<std::uint32_t> width;  // lanes
    bool operator==(PciPlace const&) const = default;
};

[[nodiscard]] PciDistance distance(PciPlace const& one, PciPlace const& other);

struct AttachedFunction {
    std::string in_guest;  // as VmHostdev.in_guest
    std::uint16_t vendor = 0, device = 0;
    PciPlace host;
    bool operator==(AttachedFunction const&) const = default;
};

struct HostTopology {
    std::vector<AttachedFunction> functions;
    // Host settings that block direct access between a GPU and a NIC, for its admin: ACS, ATS.
    std::vector<std::string> notes;
    bool operator==(HostTopology const&) const = default;
};

// A GPU and a NIC of this machine, and whether NCCL would use GPUDirect between them.
struct GpuNicPair {
    PciAddress gpu, nic;
    PciDistance here = PciDistance::unknown;  // by this machine's PCI tree, which NCCL reads
    std::optional<PciDistance> on_host;       // in a VM whose host reported it
    bool nccl_uses_gpudirect = false;
    std::string because;
    std::string remedy;
};

extern template struct Json<PciPlace>;
extern template struct Json<HostTopology>;
extern template struct Json<GpuNicPair>;

// A GPU's GPUDirect RDMA properties, and the results of testing it: vf-guest gpu, vf-guest gpu
// test. Values; any thread.

// How a NIC can reach the GPU's memory.
enum class GpuRoute {
    dma_buf,      // preferred
    peermem,      // nvidia-peermem, which is loaded
    none,         // the GPU supports it, but something is missing: see detail and remedy
    not_offered,  // a product limit, as on a GeForce; not a fault
};

// Flavour of NVIDIA's kernel modules.
enum class DriverFlavour { open, proprietary };

// Which devices can read a NIC's writes in order without a flush.
enum class WritesOrdering { none, owner, all_devices };

struct GpuInfo {
    PciAddress pci;
    std::string name;                // for display only: no decision depends on it
    std::string compute_capability;  // "9.0"
    std::uint64_t memory_bytes = 0;
    std::optional<std::uint64_t> bar1_bytes;  // how much of it NICs can reach at a time
    std::string cuda_version;                 // "13.0": the newest that the driver supports
    std::optional<std::string> driver_version;
    std::optional<DriverFlavour> driver_flavour;
    // CUDA attributes; absent if the driver is older than the attribute.
    std::optional<bool> gpu_direct_rdma;            // 116
    std::optional<bool> dma_buf;                    // 124
    std::optional<bool> vmm_gpu_direct_rdma;        // 110
    std::optional<bool> flush_writes;               // 117: cuFlushGPUDirectRDMAWrites() works
    std::optional<WritesOrdering> writes_ordering;  // 118
    bool peermem_loaded = false;
    std::string peermem;  // why it is loaded, is not, or would not load
    std::optional<PciAddress> nearest_nic;
    std::optional<PciDistance> distance;  // to nearest_nic
    GpuRoute route = GpuRoute::none;
    std::string detail;  // one sentence about the route
    std::string remedy;
    bool operator==(GpuInfo const&) const = default;
};

struct GpuTestReport {
    GpuInfo gpu;
    Verdict verdict = Verdict::pending;
    std::vector<TestResult> tests;
    Time started_at{};
    Time finished_at{};
};

extern template struct Json<GpuInfo>;
extern template struct Json<GpuTestReport>;

}  // namespace vfmgr
