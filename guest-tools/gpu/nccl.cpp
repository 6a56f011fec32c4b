// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "vfmgr/machine/lines.hpp"

namespace vfmgr::guest::gpu {

std::string nccl_version_text(int code) {
    int const major = code < 10'000 ? 1000 : 10'000;
    return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

Result<std::unique_ptr<Nccl const>> Nccl::open(std::string const& library) {
    VFMGR_TRY(
        auto opened,
        Library::open(library, ", so no all-reduce was run",
                      "install NCCL from NVIDIA's CUDA repository: libnccl2 on Debian and "
                      "Ubuntu, libnccl on RHEL; or name the folder of a Python environment's "
                      "NCCL: LD_LIBRARY_PATH=SITE-PACKAGES/nvidia/nccl/lib vf-guest gpu test"));
    auto nccl = std::make_unique<Nccl>(Nccl{{std::move(opened)}, {}});
    auto const& calls = nccl->calls;
    int code = 0;
    if (calls.ncclGetVersion && calls.ncclGetVersion(&code) == nccl_success)
        nccl->version = nccl_version_text(code);
    if (auto const& missing = calls.library.missing(); !missing.empty())
        return fail(Problem::unsupported,
                    fmt::format("NCCL {} ({}) is too old for this test: it has no {}",
                                nccl->version, library, missing),
                    "install NCCL 2.4 or newer");
    return nccl;
}

Error Nccl::refusal(char const* call, NcclResult result) const {
    Error error{Problem::kernel_refused, fmt::format("NCCL {} refused {}", version, call),
                "run NCCL_DEBUG=INFO vf-guest gpu test to find out what NCCL did before; check the "
                "GPUs: dmesg | grep NVRM; nvidia-smi"};
    if (result == nccl_system_error)
        error.remedy =
            "run NCCL_DEBUG=INFO vf-guest gpu test, which names the call that failed; in a "
            "container, give it more shared memory (--shm-size=1g --ulimit memlock=-1)";
    auto const* const text = calls.ncclGetErrorString(result);
    error.causes.push_back(
        {"error " + std::to_string(result), "", text ? text : "no reason given"});
    auto const* const last = calls.ncclGetLastError ? calls.ncclGetLastError(nullptr) : nullptr;
    if (last && *last != '\0') error.causes.push_back({"NCCL's last error", "", last});
    return error;
}

Result<void> Nccl::done(char const* call, NcclResult result) const {
    if (result == nccl_success) return {};
    return fail(refusal(call, result));
}

namespace {

struct Level {
    std::string_view word;
    PciDistance distance;
};
// Nearest first; a number is an index into this list, as in NCCL's older versions. LOC is the same
// GPU, so no NIC is that near.
constexpr std::array<Level, 6> levels{{{"LOC", PciDistance::unknown},
                                       {"PIX", PciDistance::pix},
                                       {"PXB", PciDistance::pxb},
                                       {"PHB", PciDistance::phb},
                                       {"SYS", PciDistance::sys},
                                       {"SYS", PciDistance::sys}}};

// A switch of the host, by the port above its bus, with everything below it.
struct Switch {
    PciPort upper;
    std::map<PciAddress, Switch> switches;
    std::vector<PlacedFunction const*> functions;
};

// The ports on the way are a root port, then an upstream and a downstream port of each switch.
Switch& switch_of(Switch& root, std::vector<PciPort> const& above) {
    auto* at = &root;
    for (std::size_t upper = 1; upper + 1 < above.size(); upper += 2) {
        at = &at->switches[above[upper].address];
        at->upper = above[upper];
    }
    return *at;
}

// Returns a PEX switch's generation from its upstream port; 0: another switch. NCCL distinguishes
// the lower level of the fifth generation from the upper one by the first digit of the last id.
int broadcom_generation(PciPort const& upper, bool is_lower_level) {
    constexpr std::uint16_t broadcom = 0x1000, fourth = 0xc010, fifth = 0xc030;
    if (upper.vendor != broadcom || upper.subsystem_vendor != broadcom) return 0;
    auto const digit = upper.subsystem_device >> 12U;
    if (upper.device == fourth && digit == 0xa) return 4;
    return upper.device == fifth && digit == (is_lower_level ? 1 : 0) ? 5 : 0;
}

PciPlace with_switches_as_nccl(PciPlace place) {
    auto& above = place.above;
    for (std::size_t upper = 1; upper + 2 < above.size(); upper += 2) {
        auto const generation = broadcom_generation(above[upper], false);
        if (generation == 0 || broadcom_generation(above[upper + 2], true) != generation) continue;
        auto const between = above.begin() + static_cast<std::ptrdiff_t>(upper) + 1;
        above.erase(between, between + 2);
    }
    return place;
}

// Returns the ids by which NCCL recognizes a switch; empty where they are unknown.
std::string ids_text(PciPort const& upper) {
    if (upper.vendor == 0) return {};
    return fmt::format(R"(vendor="0x{:04x}" device="0x{:04x}" subsystem_vendor="0x{:04x}" )"
                       R"(subsystem_device="0x{:04x}" )",
                       upper.vendor, upper.device, upper.subsystem_vendor, upper.subsystem_device);
}

// NCCL can't read the link of a switch, which the VM does not show.
std::string link_text(PciPlace const* place) {
    constexpr double usual_speed = 16;
    constexpr std::uint32_t usual_width = 16;
    auto const speed = place ? place->speed_gts.value_or(usual_speed) : usual_speed;
    auto const width = place ? place->width.value_or(usual_width) : usual_width;
    return fmt::format(R"(link_speed="{:.1f} GT/s PCIe" link_width="{}")", speed, width);
}

PciPlace const* any_below(Switch const& one) {
    if (!one.functions.empty()) return &one.functions.front()->host;
    return one.switches.empty() ? nullptr : any_below(one.switches.begin()->second);
}

void write(Switch const& one, std::string const& indent, unsigned& number, std::string& out) {
    for (auto const& [port, below] : one.switches) {
        // Uses an address that no VM has; each switch needs its own.
        auto const index = ++number;
        out += fmt::format("{}<pci busid=\"ffff:{:02x}:{:02x}.0\" class=\"0x060400\" {}{}>\n",
                           indent, 0xff - index / 32, index % 32, ids_text(below.upper),
                           link_text(any_below(below)));
        write(below, indent + "  ", number, out);
        out += indent + "</pci>\n";
    }
    for (auto const* const function : one.functions)
        out += fmt::format("{}<pci busid=\"{}\" class=\"0x{:06x}\" {}/>\n", indent,
                           to_string(function->here), function->class_code,
                           link_text(&function->host));
}

// Returns the union of masks in hexadecimal digits, with commas at the same places.
std::string all(std::vector<std::string> const& masks) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string sum;
    for (auto const& mask : masks) {
        sum.resize(std::max(sum.size(), mask.size()), '0');
        for (std::size_t n = 0; n < mask.size(); ++n) {
            auto const one = digits.find(mask[n]), other = digits.find(sum[n]);
            sum[n] = one == digits.npos ? mask[n] : digits[one | (other & 0xfU)];
        }
    }
    return sum;
}

}  // namespace

void add_nccl_file(std::string_view text, NcclSettings& settings) {
    while (!text.empty()) {
        auto const line = checks::trimmed(checks::take_line(text));
        auto const equals = line.find('=');
        if (line.starts_with('#') || equals == line.npos) continue;
        auto const name = checks::trimmed(line.substr(0, equals));
        if (name.starts_with("NCCL_"))
            settings.emplace(name, checks::trimmed(line.substr(equals + 1)));
    }
}

Result<PciDistance> gdr_level(NcclSettings const& settings) {
    auto const given = settings.find("NCCL_NET_GDR_LEVEL");
    if (given == settings.end() || given->second.empty()) return PciDistance::pxb;
    auto const& word = given->second;
    if (word.find_first_not_of("0123456789") == word.npos) {
        auto const number = word.size() == 1 ? static_cast<std::size_t>(word[0] - '0') : 9U;
        return levels.at(std::min(number, levels.size() - 1)).distance;
    }
    auto const known = std::ranges::find(levels, word, &Level::word);
    if (known != levels.end()) return known->distance;
    return fail(Problem::invalid_request,
                fmt::format("NCCL does not know NCCL_NET_GDR_LEVEL '{}' and uses PXB", word),
                "set LOC, PIX, PXB, PHB or SYS");
}

bool within(PciDistance as_nccl, PciDistance level) {
    return level != PciDistance::unknown && as_nccl >= level;  // unknown: LOC
}

PciDistance nccl_distance(PciPlace const& one, PciPlace const& other) {
    auto const found = distance(with_switches_as_nccl(one), with_switches_as_nccl(other));
    if (found >= PciDistance::phb) return found;
    return one.numa_node == other.numa_node ? PciDistance::phb : PciDistance::sys;
}

std::string topology_file(std::vector<PlacedFunction> const& functions,
                          std::vector<std::string> const& affinities) {
    constexpr int no_node = std::numeric_limits<int>::max();  // unknown node: sorts last
    std::map<int, Switch> nodes;
    for (auto const& function : functions)
        switch_of(nodes[function.host.numa_node.value_or(no_node)], function.host.above)
            .functions.push_back(&function);
    bool const as_many = affinities.size() == nodes.size() - nodes.count(no_node);
    std::string out = "<system version=\"1\">\n";
    unsigned number = 0;
    std::size_t node = 0;
    for (auto const& [on_host, root] : nodes) {
        auto const cpus = as_many && on_host != no_node ? affinities[node] : all(affinities);
        out += fmt::format("  <cpu numaid=\"{}\" affinity=\"{}\">\n", node, cpus);
        write(root, "    ", number, out);
        out += "  </cpu>\n";
        ++node;
    }
    return out + "</system>\n";
}

}  // namespace vfmgr::guest::gpu
