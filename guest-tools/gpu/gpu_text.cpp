// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_text.hpp"

#include <fmt/format.h>

#include <array>

namespace vfmgr::guest::gpu {
namespace {

std::string gibibytes(std::uint64_t bytes) {
    constexpr double gibibyte = 1024.0 * 1024 * 1024;
    return fmt::format("{:.4g} GiB", static_cast<double>(bytes) / gibibyte);
}

std::string writes_text(GpuInfo const& gpu) {
    if (!gpu.writes_ordering) return "this driver does not report their order";
    auto const* const flush = gpu.flush_writes.value_or(false) ? ", a flush is offered" : "";
    switch (*gpu.writes_ordering) {
        case WritesOrdering::none:
            return gpu.flush_writes.value_or(false)
                       ? "in order only after a flush, which is offered"
                       : "in no order, and no flush is offered";
        case WritesOrdering::owner:
            return fmt::format("in order for this GPU{}", flush);
        case WritesOrdering::all_devices:
            break;
    }
    return fmt::format("in order for all GPUs{}", flush);
}

char const* distance_text(PciDistance distance) {
    constexpr std::array texts{"their distance is unknown here",
                               "the link between two NUMA nodes is between them",
                               "two host bridges of one NUMA node are between them",
                               "a host bridge is between them",
                               "several PCI switches are between them",
                               "at most one PCI switch is between them"};
    return texts.at(static_cast<std::size_t>(distance));
}

std::string nic_text(GpuInfo const& gpu) {
    if (!gpu.nearest_nic) return "none with RDMA in hardware";
    auto const distance = gpu.distance.value_or(PciDistance::unknown);
    return fmt::format("{}, {}: {}", to_string(*gpu.nearest_nic), enum_name(distance),
                       distance_text(distance));
}

std::string driver_text(GpuInfo const& gpu) {
    auto const flavour = gpu.driver_flavour
                             ? fmt::format(", {} kernel modules", enum_name(*gpu.driver_flavour))
                             : "";
    return fmt::format("{}{}, CUDA {}", gpu.driver_version.value_or("of unknown version"), flavour,
                       gpu.cuda_version);
}

std::string describe_one(GpuInfo const& gpu) {
    auto text = fmt::format("{}  {}, compute capability {}, {}\n", to_string(gpu.pci), gpu.name,
                            gpu.compute_capability, gibibytes(gpu.memory_bytes));
    text += fmt::format("  GPUDirect RDMA  {}: {}\n", enum_name(gpu.route), gpu.detail);
    if (!gpu.remedy.empty()) text += fmt::format("    remedy: {}\n", gpu.remedy);
    text += fmt::format("  driver          {}\n", driver_text(gpu));
    if (gpu.bar1_bytes)
        text += fmt::format("  BAR1            {}: {}\n", gibibytes(*gpu.bar1_bytes),
                            *gpu.bar1_bytes >= gpu.memory_bytes
                                ? "all of its memory can be registered at once"
                                : "no more of its memory can be registered at once");
    text += fmt::format("  NIC writes      {}\n", writes_text(gpu));
    text += fmt::format("  nvidia-peermem  {}\n", gpu.peermem);
    return text + fmt::format("  nearest NIC     {}\n", nic_text(gpu));
}

std::string rates(TestResult const& test) {
    auto const figure = [&](char const* name) {
        auto const found = test.figures.find(name);
        return found == test.figures.end() ? 0.0 : found->second;
    };
    return fmt::format(
        "check {:.4g} GB/s ({:.0f} % of a read), read {:.4g}, fill {:.4g} ({:.0f} % of a copy), "
        "copy {:.4g}",
        figure("check_gb_per_s"), figure("check_percent_of_read"), figure("read_gb_per_s"),
        figure("fill_gb_per_s"), figure("fill_percent_of_copy"), figure("copy_gb_per_s"));
}

}  // namespace

std::string describe(std::vector<GpuInfo> const& gpus) {
    std::string text;
    for (auto const& gpu : gpus) text += (text.empty() ? "" : "\n") + describe_one(gpu);
    return text.empty() ? "CUDA has no GPU on this machine\n" : text;
}

std::string describe(TestResult const& test) {
    bool const rated = test.figures.contains("check_gb_per_s");
    auto text = fmt::format("  {:<14} {:<14} {}\n", test.name, enum_name(test.verdict),
                            rated ? rates(test) : test.detail);
    if (rated && !test.detail.empty()) text += fmt::format("    {}\n", test.detail);
    if (!test.remedy.empty()) text += fmt::format("    remedy: {}\n", test.remedy);
    return text;
}

std::string describe(GpuTestReport const& report) {
    auto text = fmt::format("GPU {} ({}): {}\n", to_string(report.gpu.pci), report.gpu.name,
                            enum_name(report.verdict));
    bool const offered = report.gpu.route != GpuRoute::not_offered;
    if (!offered) text += "  " + report.gpu.detail + "\n";
    for (auto const& test : report.tests)
        if (offered || test.verdict != Verdict::not_applicable) text += describe(test);
    if (!offered) return text;
    return text + "  Not proved yet: a transfer with the host (vf-guest verify gpudirect)\n";
}

}  // namespace vfmgr::guest::gpu
