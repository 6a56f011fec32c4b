// SPDX-License-Identifier: Apache-2.0
#include "api/types/topology.hpp"

#include <algorithm>
#include <utility>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

// Returns how many switches lie between two functions below one port. A switch is two ports, one
// above its bus and one below.
std::size_t switches_between(PciPlace const& one, PciPlace const& other, std::size_t common) {
    auto const below_one = one.above.size() - common;
    auto const below_other = other.above.size() - common;
    // Each path has only the lower port of the switch where the two paths part.
    bool const parted = below_one % 2 == 1 || below_other % 2 == 1;
    return below_one / 2 + below_other / 2 + (parted ? 1 : 0);
}

// Returns the bus of the host bridge.
std::pair<std::uint32_t, std::uint8_t> root_bus(PciPlace const& place) {
    auto const& first = place.above.empty() ? place.address : place.above.front().address;
    return {first.domain, first.bus};
}

}  // namespace

template <class F, Of<PciPort> V>
void fields(F& f, V& port) {
    f.value("address", port.address);
    f.value("vendor", port.vendor);
    f.value("device", port.device);
    f.value("subsystem_vendor", port.subsystem_vendor);
    f.value("subsystem_device", port.subsystem_device);
}

template <class F, Of<PciPlace> V>
void fields(F& f, V& place) {
    f.value("address", place.address);
    f.value("above", place.above);
    f.nullable("numa_node", place.numa_node);
    f.nullable("speed_gts", place.speed_gts);
    f.nullable("width", place.width);
}

template <class F, Of<AttachedFunction> V>
void fields(F& f, V& function) {
    f.value("in_guest", function.in_guest);
    f.value("vendor", function.vendor);
    f.value("device", function.device);
    f.value("host", function.host);
}

template <class F, Of<HostTopology> V>
void fields(F& f, V& topology) {
    f.value("functions", topology.functions);
    f.value("notes", topology.notes);
}

template <class F, Of<GpuNicPair> V>
void fields(F& f, V& pair) {
    f.value("gpu", pair.gpu);
    f.value("nic", pair.nic);
    f.value("here", pair.here);
    f.nullable("on_host", pair.on_host);
    f.value("nccl_uses_gpudirect", pair.nccl_uses_gpudirect);
    f.value("because", pair.because);
    f.value("remedy", pair.remedy);
}

PciDistance distance(PciPlace const& one, PciPlace const& other) {
    auto const parted =
        std::ranges::mismatch(one.above, other.above, {}, &PciPort::address, &PciPort::address);
    auto const common = static_cast<std::size_t>(parted.in1 - one.above.begin());
    if (common > 0)
        return switches_between(one, other, common) > 1 ? PciDistance::pxb : PciDistance::pix;
    if (root_bus(one) == root_bus(other)) return PciDistance::phb;
    if (!one.numa_node || !other.numa_node) return PciDistance::unknown;
    return one.numa_node == other.numa_node ? PciDistance::node : PciDistance::sys;
}

template struct Json<PciPlace>;
template struct Json<HostTopology>;
template struct Json<GpuNicPair>;

template <class F, Of<GpuInfo> V>
void fields(F& f, V& gpu) {
    f.value("pci", gpu.pci);
    f.value("name", gpu.name);
    f.value("compute_capability", gpu.compute_capability);
    f.value("memory_bytes", gpu.memory_bytes);
    f.nullable("bar1_bytes", gpu.bar1_bytes);
    f.value("cuda_version", gpu.cuda_version);
    f.nullable("driver_version", gpu.driver_version);
    f.nullable("driver_flavour", gpu.driver_flavour);
    f.nullable("gpu_direct_rdma", gpu.gpu_direct_rdma);
    f.nullable("dma_buf", gpu.dma_buf);
    f.nullable("vmm_gpu_direct_rdma", gpu.vmm_gpu_direct_rdma);
    f.nullable("flush_writes", gpu.flush_writes);
    f.nullable("writes_ordering", gpu.writes_ordering);
    f.value("peermem_loaded", gpu.peermem_loaded);
    f.value("peermem", gpu.peermem);
    f.nullable("nearest_nic", gpu.nearest_nic);
    f.nullable("distance", gpu.distance);
    f.value("route", gpu.route);
    f.value("detail", gpu.detail);
    f.value("remedy", gpu.remedy);
}

template <class F, Of<GpuTestReport> V>
void fields(F& f, V& report) {
    f.value("gpu", report.gpu);
    f.value("verdict", report.verdict);
    f.value("tests", report.tests);
    f.value("started_at", report.started_at);
    f.value("finished_at", report.finished_at);
}

template struct Json<GpuInfo>;
template struct Json<GpuTestReport>;

}  // namespace vfmgr
