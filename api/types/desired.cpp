// SPDX-License-Identifier: Apache-2.0
#include "api/types/desired.hpp"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

// The key names the object. An object that names itself too, such as a GET's answer, has that name.
template <class Value>
void check_names(JsonReader& reader, char const* member, std::map<std::string, Value> const& all) {
    for (auto const& [name, value] : all) {
        auto const where = std::string(member) + "/" + pointer_token(name);
        if (!can_be_a_networks(name)) reader.complain(where, rule_of_network_names);
        if (!value.name.empty() && value.name != name)
            reader.complain(where + "/name", "must be the object's key; leave it out");
    }
}

}  // namespace

template <class F, Of<DesiredDocument> V>
void fields(F& f, V& document) {
    f.defaulted("pfs", document.pfs);
    f.defaulted("networks", document.networks);
    f.defaulted("pools", document.pools);
    f.defaulted("rdma_links", document.rdma_links);
    f.maybe("identities", document.identities);
}

void check(JsonReader& reader, DesiredDocument const& document) {
    for (auto const& [pci, spec] : document.pfs) {
        auto const address = PciAddress::parse(pci);
        if (!address || to_string(*address) != pci)
            reader.complain("pfs/" + pointer_token(pci), "must be a PCI address: 0000:01:00.0");
    }
    check_names(reader, "networks", document.networks);
    check_names(reader, "pools", document.pools);
    for (auto const& [name, spec] : document.rdma_links)
        if (auto const wrong = wrong_rdma_name(name))
            reader.complain("rdma_links/" + pointer_token(name), *wrong);
}

template <class F, Of<DesiredChange> V>
void fields(F& f, V& change) {
    auto now = nlohmann::json::parse(change.now, nullptr, false);
    auto then = nlohmann::json::parse(change.then, nullptr, false);
    f.value("pointer", change.pointer);
    f.value("now", now);
    f.value("then", then);
    f.value("sentence", change.sentence);
    if constexpr (!std::is_const_v<V>) {
        change.now = now.dump();
        change.then = then.dump();
    }
}

template <class F, Of<DesiredDryRun> V>
void fields(F& f, V& answer) {
    f.value("changes", answer.changes);
    f.value("plan", answer.plan);
}

template struct Json<DesiredDryRun>;
template struct Json<DesiredDocument>;
template struct Json<DesiredChange>;

}  // namespace vfmgr
