// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/choose.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

bool mac_holds(VfSpec const& desired, VfSpec const& reported) {
    if (!desired.mac || !reported.mac) return false;
    return *reported.mac == *desired.mac ||
           (desired.mac->zero() && *reported.mac == quirks::stand_in_mac);
}

bool names_vfio_driver(std::string_view driver) {
    return driver == "vfio-pci" || driver.ends_with("-vfio-pci") || driver.ends_with("_vfio_pci");
}

VfSpec only_members_of(VfSpec const& mask, VfSpec values) {
    for_each_member([&](VfAttribute, auto member) {
        if (!(mask.*member)) (values.*member).reset();
    });
    return values;
}

VfSpec differing(VfSpec desired, VfSpec const& now) {
    for_each_member([&](VfAttribute, auto member) {
        if (desired.*member == now.*member) (desired.*member).reset();
    });
    if (mac_holds(desired, now)) desired.mac.reset();
    return desired;
}

bool holds(VfSpec const& desired, VfSpec const& now) {
    bool all = true;
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(desired.*member) || desired.*member == now.*member) return;
        all = all && attribute == VfAttribute::mac && mac_holds(desired, now);
    });
    return all;
}

namespace {

constexpr std::size_t runs_max = 10;
constexpr std::size_t runs_min = 5;

enum class Better { more, less };

struct Figure {
    char const* name;
    char const* prefix;
    char const* unit;
    Better better;
    double factor;  // of the median: a figure beyond it is clearly worse
};
constexpr std::array compared{Figure{"bandwidth_mbps", "", "Mbit/s", Better::more, 0.75},
                              Figure{"p50_us", "p50 ", "us", Better::less, 1.33}};

// Figures come from the guest: a value that is no duration and no rate is ignored.
std::optional<double> figure_of(TestResult const& test, char const* name) {
    auto const found = test.figures.find(name);
    if (test.verdict != Verdict::pass || found == test.figures.end() || !(found->second > 0))
        return std::nullopt;
    return found->second;
}

bool comparable(Verification const& run, Verification const& earlier) {
    return earlier.verdict == Verdict::pass && earlier.path == run.path &&
           earlier.responder == run.responder;
}

// Returns the figures of the last comparable runs, in ascending order.
std::vector<double> figures_before(Verification const& run, std::string const& test,
                                   char const* name, std::vector<Verification> const& earlier) {
    std::vector<double> before;
    for (auto const& one : earlier) {
        if (before.size() == runs_max) break;
        auto const same = std::ranges::find(one.tests, test, &TestResult::name);
        if (!comparable(run, one) || same == one.tests.end()) continue;
        if (auto const figure = figure_of(*same, name)) before.push_back(*figure);
    }
    std::ranges::sort(before);
    return before;
}

double median_of(std::vector<double> const& ascending) {
    auto const half = ascending.size() / 2;
    if (ascending.size() % 2 == 1) return ascending[half];
    return (ascending[half - 1] + ascending[half]) / 2;
}

constexpr char const* remedy =
    "look for other load while it runs: on the PF (ip -s link, vfctl vf list), on the host's CPUs "
    "(top, numastat) and in the VM (vmstat); and for what changed since: rate limits and MTU "
    "of the VF, the VM's CPUs, kernel or firmware";

}  // namespace

std::vector<Warning> slower_than_before(Verification const& run,
                                        std::vector<Verification> const& earlier) {
    std::vector<Warning> warnings;
    for (auto const& test : run.tests)
        for (auto const& kind : compared) {
            auto const now = figure_of(test, kind.name);
            if (!now) continue;
            auto const before = figures_before(run, test.name, kind.name, earlier);
            if (before.size() < runs_min) continue;
            auto const median = median_of(before);
            bool const more = kind.better == Better::more;
            // It must be beyond all of them, too: a figure that always varied is no news.
            auto const worst = more ? before.front() : before.back();
            bool const worse = more ? *now < kind.factor * median && *now < worst
                                    : *now > kind.factor * median && *now > worst;
            if (!worse) continue;
            warnings.push_back(
                {test.name,
                 fmt::format("{}: {}{:.1f} {} is {:.2f} times the median of this VF's last {} runs "
                             "(median {:.1f}, {} {:.1f})",
                             test.name, kind.prefix, *now, kind.unit, *now / median, before.size(),
                             median, more ? "lowest" : "highest", worst),
                 remedy});
        }
    return warnings;
}

namespace {

// FNV-1a, 64 bits. A MAC has 46 free bits and the caller resolves collisions, so the hash need not
// be strong. It must be the same on every build and machine, which std::hash is not.
std::uint64_t fnv1a(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
}

bool has(VfSpec const& settings, MacAddress const& mac) {
    return settings.mac == mac;
}
bool has(VfSpec const& settings, Guid const& guid) {
    return settings.node_guid == guid || settings.port_guid == guid;
}

// Names another VF that has this MAC or GUID; empty when there is none.
template <class Identity>
std::string vf_with(HostView const& host, DesiredState const& desired, VfId const& vf,
                    Identity const& identity) {
    for (auto const& [id, attachment] : desired.attachments)
        if (has(attachment.settings, identity) && attachment.vf != vf)
            return fmt::format("VF {} attached to {} (attachment {})", to_string(attachment.vf),
                               attachment.vm, id);
    // The VM may still use the address, and a PF that is gone may come back with it.
    for (auto const& [id, quarantine] : desired.quarantine)
        if (has(quarantine.attachment.settings, identity) && id != vf)
            return fmt::format("VF {} in quarantine, last attached to {}", to_string(id),
                               quarantine.attachment.vm);
    for (auto const& [address, pf] : host.kernel.pfs)
        for (auto const& other : pf.vfs)
            if (has(other.settings, identity) && VfId{address, other.index} != vf)
                return fmt::format("VF {} of {}", other.index, display_name(pf.info));
    return {};
}

std::string owner_of(HostView const& host, DesiredState const& desired, VfId const& vf,
                     MacAddress const& mac) {
    for (auto const& [address, pf] : host.kernel.pfs)
        if (pf.info.mac == mac) return fmt::format("PF {}", display_name(pf.info));
    return vf_with(host, desired, vf, mac);
}

// `owner` names the PF or VF that has the identity; empty when it is free.
Result<void> require_nobodys(std::string const& identity, std::string const& owner) {
    if (owner.empty()) return {};
    return fail(Problem::conflict, fmt::format("{} is already used by {}", identity, owner),
                "choose another, or leave it out to get a unique one");
}

// The VM gets the same hash from this PF every time. The caller tries the next `n` while the
// identity is taken.
std::uint64_t identity_hash(VfId const& vf, std::string_view vm_uuid, std::string_view host_seed,
                            unsigned n) {
    return fnv1a(fmt::format("{}/{}/{}/{}", host_seed, vm_uuid, to_string(vf.pf), n));
}

Result<VfState const*> named_vf(PfState const& pf, std::vector<VfUse> const& uses,
                                std::uint16_t requested) {
    auto vf = std::find_if(pf.vfs.begin(), pf.vfs.end(),
                           [&](VfState const& one) { return one.index == requested; });
    if (vf == pf.vfs.end())
        return fail(Problem::not_found,
                    fmt::format("{} has no VF {}: it has {}", display_name(pf.info), requested,
                                pf.info.num_vfs),
                    fmt::format("create more: vfctl pf set {} --num-vfs {}", display_name(pf.info),
                                requested + 1));
    for (auto const& use : uses)
        if (use.vf.index == requested)
            return fail(
                Problem::vf_in_use,
                fmt::format("VF {} of {} is {}", requested, display_name(pf.info), use.reason),
                "leave the VF number out to get any free one");
    return &*vf;
}

}  // namespace

Result<VfState const*> choose_vf(HostView const& host, DesiredState const& desired,
                                 PfState const& pf, std::optional<std::uint16_t> requested) {
    auto const uses = vf_uses(host, desired, pf.info.pci);
    VfState const* chosen = nullptr;
    if (requested) {
        VFMGR_TRY(chosen, named_vf(pf, uses, *requested));
    } else {
        for (auto const& vf : pf.vfs) {
            auto const used = [&](VfUse const& use) { return use.vf.index == vf.index; };
            if (!chosen && std::none_of(uses.begin(), uses.end(), used)) chosen = &vf;
        }
    }
    if (!chosen && pf.vfs.empty())
        return fail(Problem::limit_exceeded, fmt::format("{} has no VFs", display_name(pf.info)),
                    fmt::format("create some: vfctl pf set {} --num-vfs {}", display_name(pf.info),
                                pf.info.total_vfs));
    if (!chosen)
        return fail(
            Problem::limit_exceeded,
            fmt::format("all {} VFs of {} are in use", pf.info.num_vfs, display_name(pf.info)),
            "detach one, or use another PF");
    if (!chosen->iommu_group)
        return fail(Problem::unsupported,
                    fmt::format("VF {} of {} has no IOMMU group, so it can't be attached to a VM",
                                chosen->index, display_name(pf.info)),
                    "enable the IOMMU: VT-d or AMD-Vi in the firmware, and intel_iommu=on on the "
                    "kernel command line");
    return chosen;
}

MacAddress choose_mac(HostView const& host, DesiredState const& desired, VfId const& vf,
                      std::string_view vm_uuid, std::string_view host_seed) {
    for (unsigned n = 0;; ++n) {
        auto hash = identity_hash(vf, vm_uuid, host_seed, n);
        MacAddress mac;
        for (auto& octet : mac.octets) {
            octet = static_cast<std::uint8_t>(hash & 0xff);
            hash >>= 8;
        }
        // Locally administered (bit 1), unicast (bit 0).
        mac.octets[0] = static_cast<std::uint8_t>((mac.octets[0] & 0xfc) | 0x02);
        if (owner_of(host, desired, vf, mac).empty()) return mac;
    }
}

Result<void> check_mac(HostView const& host, DesiredState const& desired, VfId const& vf,
                       MacAddress const& mac) {
    return require_nobodys("MAC " + to_string(mac), owner_of(host, desired, vf, mac));
}

Guid choose_guid(HostView const& host, DesiredState const& desired, VfId const& vf,
                 std::string_view vm_uuid, std::string_view host_seed) {
    constexpr std::uint64_t group = 1ULL << 56U;
    constexpr std::uint64_t local = 1ULL << 57U;
    for (unsigned n = 0;; ++n) {
        Guid const guid{(identity_hash(vf, vm_uuid, host_seed, n) & ~group) | local};
        if (vf_with(host, desired, vf, guid).empty()) return guid;
    }
}

Result<void> check_guid(HostView const& host, DesiredState const& desired, VfId const& vf,
                        Guid const& guid) {
    return require_nobodys("GUID " + to_string(guid), vf_with(host, desired, vf, guid));
}

namespace {

// Attachments by address, those of VFs in quarantine too: their VMs may still use theirs.
std::map<IpAddress, Attachment const*> users_of_addresses(DesiredState const& desired) {
    std::map<IpAddress, Attachment const*> users;
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.attachment.address)
            users[*quarantine.attachment.address] = &quarantine.attachment;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.address) users[*attachment.address] = &attachment;
    return users;
}

std::string host_addresses(Network const& network) {
    std::vector<std::string> all;
    for (auto const& on : network.pfs) all.push_back(to_string(on.host_address));
    return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

Result<IpAddress> choose_address(DesiredState const& desired, Network const& network,
                                 std::optional<IpAddress> const& requested) {
    auto const users = users_of_addresses(desired);
    if (requested) {
        if (!can_be_a_vms(network, *requested))
            return fail(Problem::conflict,
                        fmt::format("{} can't be a VM's address in network {} ({}, host {})",
                                    to_string(*requested), network.name, to_string(network.prefix),
                                    host_addresses(network)),
                        "choose another inside the prefix, or leave it out");
        if (auto const user = users.find(*requested); user != users.end())
            return fail(Problem::conflict,
                        fmt::format("{} is the address of {} (attachment {})",
                                    to_string(*requested), user->second->vm, user->second->id),
                        "choose another, or leave it out");
        return *requested;
    }
    auto const whole = Range<IpAddress>{network.prefix.address, network.prefix.last()};
    auto const& ranges = network.ranges.empty() ? std::vector{whole} : network.ranges;
    for (auto const& range : ranges)
        for (std::optional address = range.first; address && *address <= range.last;
             address = address->next())
            if (can_be_a_vms(network, *address) && !users.contains(*address)) return *address;
    return fail(
        Problem::limit_exceeded,
        fmt::format("network {} ({}) has no free address{}", network.name,
                    to_string(network.prefix), network.ranges.empty() ? "" : " in its ranges"),
        network.ranges.empty() ? "detach a VM, or give the network a larger prefix"
                               : "detach a VM, or give the network another range");
}

}  // namespace vfmgr
