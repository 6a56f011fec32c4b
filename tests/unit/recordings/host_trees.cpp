// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/recordings/host_trees.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <pugixml.hpp>
#include <tuple>

#include "guest-tools/gpu/nccl.hpp"
#include "guest-tools/gpu/topology.hpp"
#include "tests/unit/recordings/recordings.hpp"
#include "tests/unit/vfmgr/plan/gpu_host.hpp"
#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/plan/guest_topology.hpp"

namespace vfmgr::checks::recordings {

namespace {

bool is_nic(unsigned class_code) {
    return class_code >> 16U == 0x02;
}

using Tally = std::map<PciDistance, int, std::greater<>>;

std::string to_text(Tally const& tally) {
    std::string text;
    for (auto const& [distance, count] : tally)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, enum_name(distance));
    return text.empty() ? "none" : text;
}

// NCCL has no NODE, and treats functions of one slot as one. Without known nodes there is nothing
// to compare: its file has to name some CPU.
std::optional<PciDistance> in_nccls_words(Pair const& pair, PciDistance distance) {
    auto const slot = [](PciAddress const& one) {
        return std::tuple(one.domain, one.bus, one.device);
    };
    if (slot(pair.first) == slot(pair.second) || distance == PciDistance::unknown)
        return std::nullopt;
    return distance == PciDistance::node ? PciDistance::phb : distance;
}

// A VM that was given these functions: their addresses differ there.
std::map<PciAddress, PciAddress> addresses_in_vm(Distances const& of) {
    std::map<PciAddress, PciAddress> in_vm;  // by the host's
    for (auto const& [pair, distance] : of)
        for (auto const& function : {pair.first, pair.second})
            in_vm.try_emplace(function, PciAddress{0, static_cast<std::uint8_t>(in_vm.size() + 1)});
    return in_vm;
}

std::string file_for_vm(Machine const& host, std::map<PciAddress, PciAddress> const& in_vm) {
    std::vector<guest::gpu::PlacedFunction> given;
    for (auto const& [on_host, here] : in_vm) {
        auto const* const device = find_pci(host, on_host);
        given.push_back({here, device->class_code(), place_of(host, *device)});
    }
    return guest::gpu::topology_file(given, {"ff"});
}

void expect_nccl_is_told(std::string const& xml, std::map<PciAddress, PciAddress> const& in_vm,
                         Distances const& expected) {
    std::map<PciAddress, NcclFunction> read;
    for (auto& function : functions_of_nccl(xml))
        read.emplace(function.placed.address(), std::move(function));
    ASSERT_EQ(read.size(), in_vm.size()) << xml;
    for (auto const& [pair, distance] : expected) {
        auto const nccls = in_nccls_words(pair, distance);
        if (!nccls) continue;
        auto const& one = read.at(in_vm.at(pair.first));
        auto const& other = read.at(in_vm.at(pair.second));
        EXPECT_EQ(enum_name(nccl_distance(one, other)), enum_name(*nccls))
            << "NCCL is told so of " << to_string(pair.first) << " and " << to_string(pair.second);
    }
}

// Expects vf-guest's results on this machine: which NIC is nearest to each GPU, and whether NCCL,
// which accepts up to PXB, would use GPUDirect with each.
void expect_gpus_are_judged(Machine const& machine, Distances const& expected) {
    std::set<PciAddress> functions;
    for (auto const& [pair, distance] : expected) functions.insert({pair.first, pair.second});
    std::vector<GpuInfo> gpus;
    for (auto const& function : functions) {
        if (is_nic(find_pci(machine, function)->class_code())) continue;
        auto& gpu = gpus.emplace_back();
        gpu.pci = function;
        gpu.route = GpuRoute::dma_buf;
    }
    std::map<PciAddress, PciDistance> nearest;
    auto const judged = guest::gpu::judge(machine, gpus, std::nullopt, {});
    EXPECT_EQ(judged.size(), gpus.size() * rdma_nics(machine).size());
    for (auto const& pair : judged) {
        auto const recorded = expected.at(pair_of(pair.gpu, pair.nic));
        EXPECT_EQ(enum_name(pair.here), enum_name(recorded)) << to_string(pair.gpu);
        bool const near = recorded == PciDistance::pix || recorded == PciDistance::pxb;
        EXPECT_EQ(pair.nccl_uses_gpudirect, near) << pair.because;
        nearest[pair.gpu] = std::max(nearest[pair.gpu], recorded);
    }
    for (auto const& [gpu, recorded] : nearest) {
        auto const* const nic = nearest_nic(machine, *find_pci(machine, gpu));
        ASSERT_NE(nic, nullptr);
        EXPECT_EQ(enum_name(expected.at(pair_of(gpu, nic->address))), enum_name(recorded))
            << to_string(nic->address) << " is not the nearest of " << to_string(gpu);
    }
}

using Between = PciDistance (*)(PciPlace const&, PciPlace const&);

// Returns what was compared; empty, with a failed test, where a function is not read.
std::string compared_by(Between distance, Machine const& machine, Distances const& expected) {
    Tally of_gpu_and_nic, of_others;
    for (auto const& [pair, recorded] : expected) {
        auto const* const one = find_pci(machine, pair.first);
        auto const* const other = find_pci(machine, pair.second);
        if (!one || !other) {
            ADD_FAILURE() << to_string(one ? pair.second : pair.first) << " is not read";
            return {};
        }
        auto const here = place_of(machine, *one), there = place_of(machine, *other);
        EXPECT_EQ(enum_name(distance(here, there)), enum_name(recorded))
            << to_string(pair.first) << " and " << to_string(pair.second);
        EXPECT_EQ(distance(there, here), distance(here, there))
            << to_string(pair.first) << " and " << to_string(pair.second);
        ++(is_nic(one->class_code()) != is_nic(other->class_code()) ? of_gpu_and_nic
                                                                    : of_others)[recorded];
    }
    auto text = fmt::format("GPU-NIC {}; others {}", to_text(of_gpu_and_nic), to_text(of_others));
    testing::Test::RecordProperty("compared", text);
    return text;
}

// Attaches a VF near each GPU, or as many as there are NICs, in one request.
void expect_best_set(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics,
                     vfmgr::test::Badness const& best) {
    auto const host = vfmgr::test::gpu_host(gpus, nics);
    std::vector<AttachmentSpec> const specs(std::min(gpus.size(), nics.size()),
                                            vfmgr::test::near_gpu());
    if (specs.empty()) return;
    auto const set = vfmgr::test::plan_near_gpus(host, specs);
    ASSERT_TRUE(set) << set.error().detail;
    auto const placement = vfmgr::test::placement_of(host, set->attachments);
    EXPECT_EQ(vfmgr::test::badness(gpus, nics, placement), best);
}

// Gives a VM all of them, and has it find near what is near here, and nothing else.
void expect_placed_as_on_host(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics,
                              std::vector<std::int32_t> const& cell_nodes) {
    auto host = vfmgr::test::gpu_host(gpus, nics);
    auto& vm = host.view.hypervisor.vms.begin()->second;
    for (auto const& nic : nics) vm.config.push_back({nic.place.address, std::nullopt});
    vm.pcie = GuestPcie{1, {}, cell_nodes, {}};
    for (std::uint32_t slot = 3; slot <= 0x1a; ++slot) vm.pcie->free_slots.push_back(slot);
    for (auto const& pair : vm_topology(host.view, vm).pairs) {
        auto const near = pair.on_host >= PciDistance::pxb ? pair.on_host : PciDistance::phb;
        if (near == PciDistance::phb)
            EXPECT_LE(pair.proposed, near) << to_string(pair.gpu) << ' ' << to_string(pair.nic);
        else
            EXPECT_EQ(pair.proposed, near) << to_string(pair.gpu) << ' ' << to_string(pair.nic);
    }
}

// Pairs the host's GPUs with its NICs, as if each could have one more VF.
void expect_best_placement(Machine const& machine, Distances const& expected) {
    std::set<PciAddress> functions;
    for (auto const& [pair, recorded] : expected) functions.insert({pair.first, pair.second});
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
    for (auto const& address : functions) {
        auto const* const device = find_pci(machine, address);
        ASSERT_NE(device, nullptr);
        if (is_nic(device->class_code()))
            nics.push_back({place_of(machine, *device), 1});
        else
            gpus.push_back(place_of(machine, *device));
    }
    constexpr std::size_t nics_max = 14;  // of which each set is tried
    if (nics.size() > nics_max) nics.resize(nics_max);
    SCOPED_TRACE(fmt::format("{} GPUs and {} NICs", gpus.size(), nics.size()));
    auto const best = vfmgr::test::best_of_each_set(gpus, nics);
    EXPECT_EQ(vfmgr::test::badness(gpus, nics, place_gpus(gpus, nics)), best);
    expect_best_set(gpus, nics, best);
    expect_placed_as_on_host(gpus, nics, {});
    expect_placed_as_on_host(gpus, nics, {0, 1, 2, 3, 4, 5, 6, 7});
}

bool is_behind(Bridge const& bridge, PciAddress const& function) {
    return bridge.address.domain == function.domain && bridge.secondary <= function.bus &&
           function.bus <= bridge.subordinate;
}

// Walks NCCL's elements down from one; what such a file leaves out gets addresses that no machine
// has.
class NcclWalk {
  public:
    std::vector<NcclFunction> functions;

    void cpu(pugi::xml_node element) {
        NcclFunction below;
        below.cpu = element.attribute("numaid").value();
        below.placed.node = element.attribute("numaid").as_int(-1);
        for (auto const pci : element.children("pci")) {
            // The file has no host bridges: each root has one of its own here.
            auto const domain = 0xf000 + ++roots_;
            below.placed.path = fmt::format("pci{0:04x}:00/{0:04x}:00:01.0", domain);
            function_or_switch(pci, below);
        }
    }

  private:
    void function_or_switch(pugi::xml_node element, NcclFunction below) {
        std::string const address = element.attribute("busid").value();
        EXPECT_TRUE(addresses_.insert(address).second) << address << " is twice in NCCL's file";
        below.placed.class_code = element.attribute("class").as_uint();
        below.placed.path += "/" + address;
        if (below.placed.class_code >> 8U != 0x0604) {
            functions.push_back(below);
            return;
        }
        below.switches.insert(address);
        below.placed.ports.push_back(
            {.address = address,
             .vendor = element.attribute("vendor").as_uint(),
             .device = element.attribute("device").as_uint(),
             .subsystem_vendor = element.attribute("subsystem_vendor").as_uint(),
             .subsystem_device = element.attribute("subsystem_device").as_uint(),
             .class_code = below.placed.class_code});
        for (auto const pci : element.children("pci")) {
            auto through = below;
            through.placed.path += fmt::format("/e000:{:02x}:00.0", ++ports_);
            function_or_switch(pci, through);
        }
    }

    std::set<std::string> addresses_;
    int roots_ = 0, ports_ = 0;
};

// "PEX gen 4" has the same ids on both levels, "gen 5" does not (getBcmGen()).
bool is_two_levels_of_one(pugi::xml_node upper, pugi::xml_node lower) {
    auto const ids = [](pugi::xml_node element) {
        std::string text;
        for (auto const* const name : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
            text += std::string(element.attribute(name).value()).substr(0, 6) + " ";
        return text.substr(0, text.size() - 4);  // three digits of the last may be any
    };
    std::string const fourth = "0x1000 0xc010 0x1000 0xa", fifth = "0x1000 0xc030 0x1000 0x";
    return (ids(upper) == fourth && ids(lower) == fourth) ||
           (ids(upper) == fifth + "0" && ids(lower) == fifth + "1");
}

void flatten(pugi::xml_node element) {
    std::vector<pugi::xml_node> lower;
    for (auto const child : element.children("pci"))
        if (is_two_levels_of_one(element, child)) lower.push_back(child);
    for (auto one : lower) {
        while (auto const below = one.first_child()) element.append_move(below);
        element.remove_child(one);
    }
    for (auto const child : element.children("pci")) flatten(child);
}

}  // namespace

PciAddress TreeFunction::address() const {
    return PciAddress::parse(path.substr(path.rfind('/') + 1)).value();
}

Facts host_of(std::vector<TreeFunction> const& functions) {
    std::vector<Function> plain;
    std::map<std::string, Function> ports;
    for (auto const& one : functions) {
        plain.push_back({.address = to_string(one.address()), .class_code = one.class_code});
        for (auto const& port : one.ports) ports.emplace(port.address, port);
    }
    for (auto const& [address, port] : ports) plain.push_back(port);
    auto facts = machine_with(plain);
    for (auto const& one : functions) {
        auto const folder = "/sys/bus/pci/devices/" + to_string(one.address());
        facts.links[folder] = {"../../../devices/" + one.path, 0};
        facts.files[folder + "/numa_node"] = {fmt::format("{}\n", one.node), 0};
    }
    return facts;
}

Pair pair_of(PciAddress const& one, PciAddress const& other) {
    return std::minmax(one, other);
}

Distances distances(
    std::vector<PciAddress> const& functions,
    std::function<PciDistance(PciAddress const&, PciAddress const&)> const& between) {
    Distances all;
    for (auto one = functions.begin(); one != functions.end(); ++one)
        for (auto other = std::next(one); other != functions.end(); ++other)
            all[pair_of(*one, *other)] = between(*one, *other);
    return all;
}

std::string compared(Facts const& host, Distances const& expected) {
    auto const machine = read_machine(host);
    auto text = compared_by(vfmgr::distance, machine, expected);
    if (text.empty()) return text;
    auto const in_vm = addresses_in_vm(expected);
    expect_nccl_is_told(file_for_vm(machine, in_vm), in_vm, expected);
    expect_gpus_are_judged(machine, expected);
    expect_best_placement(machine, expected);
    return text;
}

std::string compared_as_nccl(Facts const& host, Distances const& expected) {
    auto const machine = read_machine(host);
    auto text = compared_by(guest::gpu::nccl_distance, machine, expected);
    if (text.empty()) return text;
    auto const in_vm = addresses_in_vm(expected);
    expect_nccl_is_told(flattened(file_for_vm(machine, in_vm)), in_vm, expected);
    return text;
}

std::string path_by_buses(std::vector<Bridge> const& bridges, PciAddress const& function) {
    auto const above = std::ranges::find_if(bridges, [&](Bridge const& one) {
        return one.address.domain == function.domain && one.secondary == function.bus;
    });
    return (above == bridges.end() ? fmt::format("pci{:04x}:{:02x}", function.domain, function.bus)
                                   : path_by_buses(bridges, above->address)) +
           "/" + to_string(function);
}

std::optional<PciDistance> below_bridges(std::vector<Bridge> const& bridges, PciAddress const& one,
                                         PciAddress const& other) {
    int both = 0, before_one = 0, before_other = 0;
    for (auto const& bridge : bridges) {
        bool const has_one = is_behind(bridge, one), has_other = is_behind(bridge, other);
        both += has_one && has_other;
        before_one += has_one && !has_other;
        before_other += has_other && !has_one;
    }
    if (both == 0) return std::nullopt;
    return before_one <= 1 && before_other <= 1 ? PciDistance::pix : PciDistance::pxb;
}

PciDistance above_bridges(Root const& one, Root const& other) {
    if (one.bus == other.bus) return PciDistance::phb;
    if (one.node < 0 || other.node < 0) return PciDistance::unknown;
    return one.node == other.node ? PciDistance::node : PciDistance::sys;
}

std::string flattened(std::string const& xml) {
    pugi::xml_document document;
    document.load_buffer(xml.data(), xml.size());
    for (auto const cpu : document.child("system").children("cpu")) flatten(cpu);
    std::ostringstream text;
    document.save(text);
    return text.str();
}

std::vector<NcclFunction> functions_of_nccl(std::string const& xml) {
    pugi::xml_document document;
    auto const parsed = document.load_buffer(xml.data(), xml.size());
    EXPECT_TRUE(parsed) << parsed.description();
    NcclWalk walk;
    for (auto const cpu : document.child("system").children("cpu")) walk.cpu(cpu);
    return walk.functions;
}

PciDistance nccl_distance(NcclFunction const& one, NcclFunction const& other) {
    auto all = one.switches;
    all.insert(other.switches.begin(), other.switches.end());
    auto const common = one.switches.size() + other.switches.size() - all.size();
    if (common == 0) return one.cpu == other.cpu ? PciDistance::phb : PciDistance::sys;
    // Only the nearest of the common ones is on the path.
    return all.size() - common + 1 > 1 ? PciDistance::pxb : PciDistance::pix;
}

}  // namespace vfmgr::checks::recordings
