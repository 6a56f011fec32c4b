// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/fleet/rollout/rollout.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::size_t desired_max = 64;  // networks, pools and names that are to go, of each
constexpr std::size_t waves_max = 16;

}  // namespace

Result<WaveSize> WaveSize::parse(std::string_view text) {
    bool const percent = text.ends_with('%');
    auto const digits = text.substr(0, text.size() - (percent ? 1 : 0));
    auto const number = parse_digits(digits, {.digits_max = 5, .max = percent ? 100U : UINT16_MAX});
    if (number && *number > 0) return WaveSize{static_cast<std::uint32_t>(*number), percent};
    return fail(Problem::invalid_request, fmt::format("{} is no size of a wave", quoted(text)),
                "write a number of hosts or a part of them, such as 1 or 10%");
}

std::string to_string(WaveSize const& size) {
    return fmt::format("{}{}", size.number, size.percent ? "%" : "");
}

template <class F, Of<HostSelector> V>
void fields(F& f, V& select) {
    f.defaulted("names", select.names);
    f.defaulted("labels", select.labels);
    f.defaulted("racks", select.racks);
}

template <class F, Of<HostRail> V>
void fields(F& f, V& rail) {
    f.value("pf", rail.pf);
    f.value("host_address", rail.host_address);
}

template <class F, Of<FleetNetwork> V>
void fields(F& f, V& desired) {
    f.value("network", desired.network);
    f.defaulted("select", desired.select);
    f.defaulted("pfs", desired.pfs);
}

void check(JsonReader& reader, FleetNetwork const& desired) {
    if (!reader.clean("network")) return;
    if (desired.network.name.empty()) reader.complain("network/name", "is required");
    if (!desired.network.pfs.empty())
        reader.complain("network/pfs", "differ from host to host: name them in pfs");
}

template <class F, Of<FleetPool> V>
void fields(F& f, V& desired) {
    f.value("pool", desired.pool);
    f.defaulted("select", desired.select);
}

void check(JsonReader& reader, FleetPool const& desired) {
    if (reader.clean("pool") && desired.pool.name.empty())
        reader.complain("pool/name", "is required");
}

template <class F, Of<FleetAbsent> V>
void fields(F& f, V& gone) {
    f.value("name", gone.name);
    f.defaulted("select", gone.select);
}

void check(JsonReader& reader, FleetAbsent const& gone) {
    if (reader.clean("name") && !can_be_a_networks(gone.name))
        reader.complain("name", rule_of_network_names);
}

template <class F, Of<RolloutSpec> V>
void fields(F& f, V& spec) {
    f.defaulted("networks", spec.networks);
    f.defaulted("pools", spec.pools);
    f.defaulted("absent_networks", spec.absent_networks);
    f.defaulted("absent_pools", spec.absent_pools);
    f.defaulted("waves", spec.waves);
    f.defaulted("failures_max", spec.failures_max);
}

void check(JsonReader& reader, RolloutSpec const& spec) {
    std::set<std::string> networks;
    std::set<std::string> pools;
    auto const once = [&](char const* key, std::size_t i, auto& all, std::string const& name) {
        if (!all.insert(name).second)
            reader.complain(reader.member_of(key, i), fmt::format("names {} again", name));
    };
    for (auto const& [key, size] : {std::pair{"networks", spec.networks.size()},
                                    {"pools", spec.pools.size()},
                                    {"absent_networks", spec.absent_networks.size()},
                                    {"absent_pools", spec.absent_pools.size()}})
        if (size > desired_max)
            return reader.complain(key, fmt::format("must be at most {}", desired_max));
    for (std::size_t i = 0; i < spec.networks.size(); ++i)
        once("networks", i, networks, spec.networks[i].network.name);
    for (std::size_t i = 0; i < spec.pools.size(); ++i)
        once("pools", i, pools, spec.pools[i].pool.name);
    for (std::size_t i = 0; i < spec.absent_networks.size(); ++i)
        once("absent_networks", i, networks, spec.absent_networks[i].name);
    for (std::size_t i = 0; i < spec.absent_pools.size(); ++i)
        once("absent_pools", i, pools, spec.absent_pools[i].name);
    if (networks.empty() && pools.empty() && reader.clean())
        reader.complain("networks", "is required, or pools, or what is to be absent");
    if (spec.waves.size() > waves_max)
        reader.complain("waves", fmt::format("must be at most {}", waves_max));
}

template <class F, Of<RolloutChange> V>
void fields(F& f, V& change) {
    f.value("path", change.path);
    f.maybe("was", change.was);
}

template <class F, Of<RolloutHost> V>
void fields(F& f, V& host) {
    f.value("host", host.host);
    f.value("wave", host.wave);
    f.value("state", host.state);
    f.value("changes", host.changes);
    f.value("planned", host.planned);
    f.value("applied", host.applied);
    f.defaulted("hit", host.hit);
    f.defaulted("detail", host.detail);
}

void check(JsonReader& reader, RolloutHost const& host) {
    for (auto const& [key, number] :
         {std::pair{"planned", host.planned}, {"applied", host.applied}})
        if (number > host.changes.size()) reader.complain(key, "is more than there are changes");
}

template <class F, Of<Rollout> V>
void fields(F& f, V& rollout) {
    f.value("id", rollout.id);
    f.value("spec", rollout.spec);
    f.value("state", rollout.state);
    f.value("hosts", rollout.hosts);
    f.value("bodies", rollout.bodies);
    f.value("waves", rollout.waves);
    f.value("wave", rollout.wave);
    f.value("back", rollout.back);
    f.value("detail", rollout.detail);
    f.value("requested_by", rollout.requested_by);
    f.value("started_at", rollout.started_at);
    f.value("act", rollout.act);
}

// What is read is acted on: no number in it may lead out of its list.
void check(JsonReader& reader, Rollout const& rollout) {
    if (rollout.waves > waves_max + 1 || rollout.wave > rollout.waves)
        reader.complain("wave", "is none of its waves");
    for (std::size_t h = 0; h < rollout.hosts.size(); ++h) {
        auto const& host = rollout.hosts[h];
        auto const state = host.state;
        bool const plans = state == RolloutHostState::planning;
        bool const failed = state == RolloutHostState::failed;
        bool const forth = plans || state == RolloutHostState::pending ||
                           state == RolloutHostState::changing || (failed && !rollout.back);
        bool const back = state == RolloutHostState::reverting || (failed && rollout.back);
        if ((forth && host.applied >= host.changes.size()) ||
            (plans && host.planned >= host.changes.size()))
            reader.complain(reader.member_of("hosts", h), "has nothing left to change");
        if (back && host.applied == 0)
            reader.complain(reader.member_of("hosts", h), "has nothing left to revert");
        for (auto const& change : host.changes)
            if (change.was && *change.was >= rollout.bodies.size())
                reader.complain(reader.member_of("hosts", h), "has changes of no body");
    }
}

}  // namespace vfmgr::fleet

namespace vfmgr {
template struct Json<fleet::RolloutSpec>;
template struct Json<fleet::Rollout>;
}  // namespace vfmgr
