// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/select.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

template <class T>
bool listed(std::vector<T> const& all, T const& one) {
    return all.empty() || std::ranges::find(all, one) != all.end();
}
template <class T>
bool listed(std::vector<T> const& all, std::optional<T> const& one) {
    return all.empty() || (one && std::ranges::find(all, *one) != all.end());
}

template <class T>
std::string text_of(std::optional<T> const& value) {
    return value ? fmt::format("{}", *value) : "not known";
}

std::optional<std::string> label_mismatch(std::map<std::string, std::string> const& labels,
                                          PfSpec const* spec) {
    for (auto const& [key, value] : labels) {
        auto const has = spec ? spec->labels.find(key) : decltype(labels.end()){};
        if (!spec || has == spec->labels.end()) return fmt::format("has no label {}", key);
        if (has->second != value) return fmt::format("has label {}={}", key, has->second);
    }
    return std::nullopt;
}

Error unknown(std::string_view what, std::string const& name) {
    return discreetly({Problem::not_found, fmt::format("there is no {} {}", what, name),
                       fmt::format("vfctl {} list shows those of this host", what)});
}

// Settings of the pool that the request leaves alone.
void fill(VfSpec& settings, VfSpec const& defaults) {
    for_each_member([&](VfAttribute, auto member) {
        if (!(settings.*member)) settings.*member = defaults.*member;
    });
}

struct Considered {
    std::size_t of_vm = 0;
    std::size_t free = 0;
    std::string reason;
    bool possible = false;
};

std::optional<std::string> hindrance(DesiredState const& desired, PfState const& pf,
                                     Resolved const& request) {
    auto const& pci = pf.info.pci;
    auto const managed = desired.pfs.find(pci);
    auto const* const spec = managed == desired.pfs.end() ? nullptr : &managed->second.spec;
    if (request.pool)
        if (auto why = mismatch(request.pool->select, pf.info, spec))
            return fmt::format("is not in pool {}: it {}", request.pool->name, *why);
    if (request.spec.network) {
        auto const* const network = find_network(desired.networks, *request.spec.network);
        if (!network || !host_address_on(*network, pci))
            return fmt::format("does not carry network {}", *request.spec.network);
    }
    if (!spec || spec->mode == PfMode::observe) return "is only observed";
    if (pf.stuck) return "is stuck: " + *pf.stuck;
    if (pf.stale) return "can't be read now: " + pf.stale_reason;
    return std::nullopt;
}

Considered considered(HostView const& host, DesiredState const& desired, PfState const& pf,
                      Resolved const& request, std::string const& vm_uuid) {
    Considered result{vfs_of_vm(desired, pf.info.pci, vm_uuid), 0, {}, false};
    if (auto why = hindrance(desired, pf, request)) {
        result.reason = std::move(*why);
        return result;
    }
    result.free = free_vfs(host, desired, pf, request.choice()).size();
    result.possible = result.free > 0;
    result.reason =
        fmt::format("has {} free VFs{}", result.free == 0 ? "no" : fmt::format("{}", result.free),
                    result.of_vm > 0 ? fmt::format(", and {} of this VM", result.of_vm) : "");
    return result;
}

}  // namespace

std::size_t vfs_of_vm(DesiredState const& desired, PciAddress const& pf,
                      std::string const& vm_uuid) {
    return static_cast<std::size_t>(
        std::ranges::count_if(desired.attachments, [&](auto const& each) {
            return each.second.vf.pf == pf && each.second.vm_uuid == vm_uuid;
        }));
}

std::optional<std::string> mismatch(PoolSelectors const& select, PfInfo const& pf,
                                    PfSpec const* spec) {
    bool const named =
        select.pfs.empty() || std::ranges::find(select.pfs, pf.pci, &PfVfs::pf) != select.pfs.end();
    if (!named) return "is not among its PFs";
    if (!listed(select.drivers, pf.driver))
        return fmt::format("has driver {}", pf.driver.empty() ? "none" : pf.driver);
    if (!listed(select.devices, pf.pci_ids))
        return fmt::format("is {}", pf.pci_ids ? to_string(*pf.pci_ids) : "of an unknown device");
    if (!listed(select.numa_nodes, pf.numa_node))
        return fmt::format("is on NUMA node {}", text_of(pf.numa_node));
    if (!listed(select.link_layers, pf.link_layer))
        return fmt::format("is {}", enum_name(pf.link_layer));
    if (!listed(select.pcie_roots, pf.pcie_root))
        return fmt::format("is below {}", text_of(pf.pcie_root));
    if (select.rdma && *select.rdma != pf.rdma_device.has_value())
        return *select.rdma ? "has no RDMA device" : "has an RDMA device";
    return label_mismatch(select.labels, spec);
}

Result<Resolved> resolved(DesiredState const& desired, AttachmentSpec const& spec) {
    Resolved result{.spec = spec};
    auto& full = result.spec;
    if (spec.reservation) {
        auto const kept = desired.reservations.find(*spec.reservation);
        if (kept == desired.reservations.end())
            return fail(unknown("reservation", *spec.reservation));
        full.pool = kept->second.spec.pool;
        if (!full.network) full.network = kept->second.spec.network;
    }
    if (full.pool) {
        auto const pool = desired.pools.find(*full.pool);
        if (pool == desired.pools.end()) return fail(unknown("pool", *full.pool));
        result.pool = &pool->second.pool;
        auto const& defaults = result.pool->defaults;
        if (!full.network) full.network = defaults.network;
        fill(full.settings, defaults.settings);
        if (!full.verify && full.network) full.verify = defaults.verify;
        if (!full.verify_profile) full.verify_profile = defaults.verify_profile;
    }
    if (!full.verify) full.verify = VerifyMode::none;
    if (!full.verify_profile) full.verify_profile = Profile::default_;
    bool const proves = *full.verify != VerifyMode::none || full.verify_every_seconds > 0;
    if (!full.network && (proves || full.address))
        return fail(Problem::invalid_request,
                    fmt::format("pool {} has no network, which {} needs", full.pool.value_or(""),
                                proves ? "a verification" : "an address"),
                    "name a network");
    if (full.network && !find_network(desired.networks, *full.network))
        return fail(unknown("network", *full.network));
    return result;
}

std::vector<Ranked> ranked_pfs(HostView const& host, DesiredState const& desired,
                               Resolved const& request, std::string const& vm_uuid) {
    std::vector<std::pair<Considered, PciAddress>> all;
    for (auto const& [pci, pf] : host.kernel.pfs)
        all.emplace_back(considered(host, desired, pf, request, vm_uuid), pci);
    std::ranges::sort(all, {}, [](auto const& each) {
        auto const& one = each.first;
        return std::tuple(!one.possible, one.of_vm, ~one.free, each.second);
    });
    std::vector<Ranked> ranked;
    for (auto& [one, pci] : all)
        ranked.push_back({{pci, false, std::move(one.reason)}, one.possible});
    return ranked;
}

std::string taken_vfs(HostView const& host, DesiredState const& desired, Resolved const& request) {
    std::size_t attached = 0;
    std::size_t reserved = 0;
    std::size_t quarantined = 0;
    std::size_t otherwise = 0;
    std::set<VfId> of_attachments;
    for (auto const& [id, attachment] : desired.attachments) of_attachments.insert(attachment.vf);
    for (auto const& [pci, pf] : host.kernel.pfs) {
        if (hindrance(desired, pf, request)) continue;
        std::map<std::uint16_t, bool> used;  // whether by a reservation alone
        for (auto const& use : vf_uses(host, desired, pci)) {
            auto const [at, first] = used.try_emplace(use.vf.index, true);
            at->second = at->second && !use.reservation.empty();
        }
        for (auto const& [index, by_reservation] : used) {
            VfId const vf{pci, index};
            if (request.pool && !holds_vf(request.pool->select, vf)) continue;
            if (of_attachments.contains(vf))
                ++attached;
            else if (desired.quarantine.contains(vf))
                ++quarantined;
            else
                ++(by_reservation ? reserved : otherwise);
        }
    }
    return fmt::format("{} are attached, {} reserved, {} in quarantine, {} otherwise in use",
                       attached, reserved, quarantined, otherwise);
}

namespace {

constexpr std::size_t reservations_max = 256;
constexpr std::size_t reservations_each_max = 64;  // of one principal

Result<void> check_share(DesiredState const& desired, std::string const& name,
                         std::string const& requested_by) {
    auto const of_others = [&](auto const& each) {
        return each.first != name && each.second.requested_by == requested_by;
    };
    auto const had = std::ranges::count_if(desired.reservations, of_others);
    if (static_cast<std::size_t>(had) >= reservations_each_max)
        return fail(discreetly({Problem::limit_exceeded,
                                fmt::format("{} has {} reservations already", requested_by, had),
                                "release one, or wait until it expires"}));
    if (desired.reservations.size() >= reservations_max && !desired.reservations.contains(name))
        return fail(Problem::limit_exceeded,
                    fmt::format("this host has {} reservations already", reservations_max),
                    "wait until one expires: vfctl reservation list");
    return {};
}

// How many VFs of that PF the reservation may have.
std::uint16_t most_of(ReservationSpec const& spec, PciAddress const& pf) {
    std::uint16_t most = spec.distinct_pfs ? 1 : spec.count;
    if (!spec.pfs) return most;
    auto const named = std::ranges::find(*spec.pfs, pf, &VfsOfPf::pf);
    return named == spec.pfs->end() ? std::uint16_t{0} : std::min(most, named->count);
}

std::string rule_of(ReservationSpec const& spec) {
    if (!spec.pfs) return spec.distinct_pfs ? " of as many PFs" : "";
    std::vector<std::string> parts;
    for (auto const& [pf, count] : *spec.pfs)
        parts.push_back(fmt::format("{} of {}", count, to_string(pf)));
    return fmt::format(" ({})", fmt::join(parts, ", "));
}

}  // namespace

Result<std::vector<VfId>> vfs_to_reserve(HostView const& host, DesiredState const& desired,
                                         std::string const& name, ReservationSpec const& spec,
                                         std::string const& requested_by) {
    VFMGR_CHECK(check_share(desired, name, requested_by));
    AttachmentSpec request;
    request.pool = spec.pool;
    request.network = spec.network;
    VFMGR_TRY(auto const full, resolved(desired, request));
    // Replaces itself: what it kept before counts as free.
    auto without = desired;
    without.reservations.erase(name);
    std::vector<VfId> vfs;
    std::vector<std::string> reasons;
    for (auto const& [candidate, possible] : ranked_pfs(host, without, full, "")) {
        reasons.push_back(fmt::format("{} {}", to_string(candidate.pf), candidate.reason));
        if (!possible) continue;
        auto left = most_of(spec, candidate.pf);
        for (auto const index :
             free_vfs(host, without, *find_pf(host, candidate.pf), full.choice())) {
            if (vfs.size() == spec.count || left-- == 0) break;
            vfs.push_back({candidate.pf, index});
        }
    }
    if (vfs.size() == spec.count) return vfs;
    auto const short_of =
        fmt::format("{} VFs{} were requested, {} are free", spec.count, rule_of(spec), vfs.size());
    auto const remedy = "request fewer, or wait until VFs are detached";
    return fail(discreetly({Problem::limit_exceeded,
                            fmt::format("{}: {}", short_of, fmt::join(reasons, "; ")), remedy},
                           fmt::format("{}: {}", short_of, taken_vfs(host, without, full)),
                           remedy));
}

}  // namespace vfmgr
