// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::guest::gpu {
namespace {

std::optional<std::string> path_of(checks::Machine const& machine, PciAddress const& function) {
    auto const target = machine.facts.target("/sys/bus/pci/devices/" + to_string(function));
    return target ? path_here(*target) : std::nullopt;
}

AttachedFunction const* find_function(HostTopology const& host_topology,
                                      std::optional<std::string> const& path) {
    auto const found =
        path ? std::ranges::find(host_topology.functions, *path, &AttachedFunction::in_guest)
             : host_topology.functions.end();
    return found == host_topology.functions.end() ? nullptr : &*found;
}

// The places of a GPU and a NIC.
struct Ends {
    PciPlace gpu, nic;
};
struct PlacesOfPairs {
    Ends here;
    std::optional<Ends> on_host;  // absent if the host did not report them
};

std::optional<Ends> on_host(checks::Machine const& machine, GpuNicPair const& pair,
                            std::optional<HostTopology> const& host_topology) {
    if (!host_topology) return std::nullopt;
    auto const* const gpu = find_function(*host_topology, path_of(machine, pair.gpu));
    auto const* const nic = find_function(*host_topology, path_of(machine, pair.nic));
    if (!gpu || !nic) return std::nullopt;
    return Ends{gpu->host, nic->host};
}

std::string level_text(NcclSettings const& settings) {
    auto const given = settings.find("NCCL_NET_GDR_LEVEL");
    return given == settings.end() ? "its default limit, PXB"
                                   : "NCCL_NET_GDR_LEVEL, " + given->second;
}

std::string remedy_for(PlacesOfPairs const& places, PciDistance level, bool in_vm) {
    auto const& host = places.on_host;
    if (host && within(nccl_distance(host->gpu, host->nic), level))
        return "run vf-guest gpu topology --write /etc/nccl-topology.xml, and set "
               "NCCL_TOPO_FILE=/etc/nccl-topology.xml in /etc/nccl.conf";
    if (in_vm && !host)
        return "attach the VF by vfmgrd on the host, which then reports its real distance; without "
               "it, where GPUDirect is known to be fast, set NCCL_NET_GDR_LEVEL=SYS in "
               "/etc/nccl.conf";
    auto const& ends = host ? *host : places.here;
    auto const far = nccl_distance(ends.gpu, ends.nic) == PciDistance::sys ? "SYS" : "PHB";
    return fmt::format(
        "use a GPU and a NIC below one PCI switch; or, where GPUDirect is measured to be faster "
        "all the same, set NCCL_NET_GDR_LEVEL={} in /etc/nccl.conf",
        far);
}

// Why NCCL's level differs from nvidia-smi's, worded for the middle of a sentence.
std::string_view difference(PciDistance as_nccl, PciDistance as_smi) {
    if (as_nccl == as_smi) return "";
    if (as_smi == PciDistance::pxb) return ", because NCCL counts two levels of a switch as one,";
    return as_smi == PciDistance::node ? ", which NCCL calls all of one NUMA node,"
                                       : ", because the NUMA nodes are unknown,";
}

void judge_nccl(GpuNicPair& pair, GpuInfo const& gpu, NcclState const& nccl,
                PlacesOfPairs const& places, bool in_vm) {
    if (gpu.route == GpuRoute::none || gpu.route == GpuRoute::not_offered) {
        pair.because = gpu.detail;
        pair.remedy = gpu.remedy;
        return;
    }
    auto const level = gdr_level(nccl.settings);
    if (!level) {
        pair.because = level.error().detail;
        pair.remedy = level.error().remedy;
    }
    auto const farthest = level.value_or(PciDistance::pxb);
    bool const by_file = nccl.file_is_current && places.on_host;
    auto const& ends = by_file ? *places.on_host : places.here;
    auto const measured = nccl_distance(ends.gpu, ends.nic);
    pair.nccl_uses_gpudirect = within(measured, farthest);
    if (!pair.because.empty()) pair.because += "; ";
    pair.because += fmt::format(
        "{}{} is {} {}{}", enum_name(measured), difference(measured, distance(ends.gpu, ends.nic)),
        pair.nccl_uses_gpudirect ? "within" : "beyond", level_text(nccl.settings),
        by_file ? fmt::format(", by {}", nccl.file) : "");
    if (!nccl.file.empty() && !nccl.file_is_current)
        pair.because += fmt::format("; {}, which NCCL reads, may differ", nccl.file);
    if (!pair.nccl_uses_gpudirect) pair.remedy = remedy_for(places, farthest, in_vm);
}

}  // namespace

std::optional<std::string> path_here(std::string_view target) {
    constexpr std::string_view root = "/pci";
    auto const begin = target.find(root);
    if (begin == target.npos) return std::nullopt;
    target.remove_prefix(begin + root.size());
    // "0000:00/0000:00:02.1/…": the root's number follows its domain.
    std::string path;
    while (!target.empty()) {
        auto const part = checks::take_part(target, '/');
        auto const colon = part.rfind(':');
        if (colon == part.npos) return std::nullopt;
        path += (path.empty() ? "" : "/") + std::string(part.substr(colon + 1));
    }
    return path;
}

std::vector<PlacedFunction> placed(checks::Machine const& vm, HostTopology const& host_topology) {
    std::vector<PlacedFunction> functions;
    if (!vm.pci()) return functions;
    for (auto const& device : *vm.pci()) {
        if (!checks::is_network(device) && !checks::is_nvidia_gpu(device)) continue;
        if (auto const* const found = find_function(host_topology, path_of(vm, device.address)))
            functions.push_back({device.address, device.class_code(), found->host});
    }
    return functions;
}

std::vector<GpuNicPair> judge(checks::Machine const& machine, std::vector<GpuInfo> const& gpus,
                              std::optional<HostTopology> const& host_topology,
                              NcclState const& nccl) {
    std::vector<GpuNicPair> pairs;
    for (auto const& gpu : gpus) {
        auto const* const device = checks::find_pci(machine, gpu.pci);
        if (!device) continue;
        for (auto const* const nic : checks::rdma_nics(machine)) {
            GpuNicPair pair;
            pair.gpu = gpu.pci;
            pair.nic = nic->address;
            PlacesOfPairs const places{{place_of(machine, *device), place_of(machine, *nic)},
                                       on_host(machine, pair, host_topology)};
            pair.here = distance(places.here.gpu, places.here.nic);
            if (auto const& host = places.on_host) pair.on_host = distance(host->gpu, host->nic);
            judge_nccl(pair, gpu, nccl, places, machine.kind == CheckedMachine::guest);
            pairs.push_back(std::move(pair));
        }
    }
    return pairs;
}

std::string describe(std::vector<GpuNicPair> const& pairs, std::vector<std::string> const& notes) {
    if (pairs.empty()) return "this machine does not have both a GPU and a NIC with RDMA\n";
    std::string text;
    for (auto const& pair : pairs) {
        text += fmt::format(
            "GPU {} and NIC {}: {} here{}\n", to_string(pair.gpu), to_string(pair.nic),
            enum_name(pair.here),
            pair.on_host ? fmt::format(", {} on the host", enum_name(*pair.on_host)) : "");
        text += fmt::format("  NCCL would {}use GPUDirect: {}\n",
                            pair.nccl_uses_gpudirect ? "" : "not ", pair.because);
        if (!pair.remedy.empty()) text += fmt::format("    remedy: {}\n", pair.remedy);
    }
    for (auto const& note : notes) text += fmt::format("for the host's admin: {}\n", note);
    return text;
}

}  // namespace vfmgr::guest::gpu
