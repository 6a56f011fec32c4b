// SPDX-License-Identifier: Apache-2.0
// A GPU's GPUDirect RDMA properties, and the results of testing it: vf-guest gpu, vf-guest gpu
// test. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/topology.hpp"
#include "api/types/verification.hpp"

namespace vfmgr {

// How a NIC can reach the GPU's memory.
enum class GpuRoute {
    dma_buf,      // preferred
    peermem,      // nvidia-peermem, which is loaded
    none,         // the GPU supports it, but something is missing: see detail and remedy
    not_offered,  // a product limit, as on a GeForce; not a fault
};
template <>
inline constexpr std::array<EnumName<GpuRoute>, 4> enum_names<GpuRoute> = {
    {{GpuRoute::dma_buf, "dma_buf"},
     {GpuRoute::peermem, "peermem"},
     {GpuRoute::none, "none"},
     {GpuRoute::not_offered, "not_offered"}}};

// Flavour of NVIDIA's kernel modules.
enum class DriverFlavour { open, proprietary };
template <>
inline constexpr std::array<EnumName<DriverFlavour>, 2> enum_names<DriverFlavour> = {
    {{DriverFlavour::open, "open"}, {DriverFlavour::proprietary, "proprietary"}}};

// Which devices can read a NIC's writes in order without a flush.
enum class WritesOrdering { none, owner, all_devices };
template <>
inline constexpr std::array<EnumName<WritesOrdering>, 3> enum_names<WritesOrdering> = {
    {{WritesOrdering::none, "none"},
     {WritesOrdering::owner, "owner"},
     {WritesOrdering::all_devices, "all_devices"}}};

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
    bool operator==(GpuTestReport const&) const = default;
};

extern template struct Json<GpuInfo>;
extern template struct Json<GpuTestReport>;

}  // namespace vfmgr
