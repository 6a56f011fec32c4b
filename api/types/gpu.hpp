// SPDX-License-Identifier: Apache-2.0
// A GPU as GPUDirect RDMA needs it, and what a test of it found: vf-guest gpu, vf-guest gpu test.
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/topology.hpp"
#include "api/types/verification.hpp"

namespace vfmgr {

// How its memory comes within reach of a NIC.
enum class GpuRoute {
    dma_buf,      // the way to prefer
    peermem,      // nvidia-peermem, which is loaded
    none,         // the GPU offers it, and something lacks: see detail and remedy
    not_offered,  // a limit of the product, as of a GeForce, and no fault
};
template <>
inline constexpr std::array<EnumName<GpuRoute>, 4> enum_names<GpuRoute> = {
    {{GpuRoute::dma_buf, "dma_buf"},
     {GpuRoute::peermem, "peermem"},
     {GpuRoute::none, "none"},
     {GpuRoute::not_offered, "not_offered"}}};

// Of NVIDIA's kernel modules.
enum class DriverFlavour { open, proprietary };
template <>
inline constexpr std::array<EnumName<DriverFlavour>, 2> enum_names<DriverFlavour> = {
    {{DriverFlavour::open, "open"}, {DriverFlavour::proprietary, "proprietary"}}};

// For whom what a NIC wrote is in order without a flush.
enum class WritesOrdering { none, owner, all_devices };
template <>
inline constexpr std::array<EnumName<WritesOrdering>, 3> enum_names<WritesOrdering> = {
    {{WritesOrdering::none, "none"},
     {WritesOrdering::owner, "owner"},
     {WritesOrdering::all_devices, "all_devices"}}};

struct GpuInfo {
    PciAddress pci;
    std::string name;                // for people only: nothing is decided by it
    std::string compute_capability;  // "9.0"
    std::uint64_t memory_bytes = 0;
    std::optional<std::uint64_t> bar1_bytes;  // what of it NICs can reach at a time
    std::string cuda_version;                 // "13.0": the newest that the driver knows
    std::optional<std::string> driver_version;
    std::optional<DriverFlavour> driver_flavour;
    // CUDA's attributes; absent where the driver is older than they are.
    std::optional<bool> gpu_direct_rdma;            // 116
    std::optional<bool> dma_buf;                    // 124
    std::optional<bool> vmm_gpu_direct_rdma;        // 110
    std::optional<bool> flush_writes;               // 117: cuFlushGPUDirectRDMAWrites() works
    std::optional<WritesOrdering> writes_ordering;  // 118
    bool peermem_loaded = false;
    std::string peermem;  // why it is, is not, or would not load
    std::optional<PciAddress> nearest_nic;
    std::optional<PciDistance> distance;  // of that one
    GpuRoute route = GpuRoute::none;
    std::string detail;  // of the route, one sentence
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

class JsonReader;
void to_json(nlohmann::json& out, GpuInfo const& gpu);
void read(JsonReader& reader, GpuInfo& gpu);
void to_json(nlohmann::json& out, GpuTestReport const& report);
void read(JsonReader& reader, GpuTestReport& report);

}  // namespace vfmgr
