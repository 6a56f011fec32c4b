// SPDX-License-Identifier: Apache-2.0
#include "api/types/vf.hpp"

#include "api/types/json.hpp"
#include "api/types/json_text.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t msix_vectors_max = 2048;  // PCI: the table size field has 11 bits

}  // namespace

VfSpec only(VfSpec const& spec, VfAttribute attribute) {
    VfSpec part;
    for_each_member([&](VfAttribute each, auto member) {
        if (each == attribute) part.*member = spec.*member;
    });
    return part;
}

VfSpec as_made() {
    VfSpec made;
    made.mac = MacAddress{};
    made.vlan = Vlan{};
    made.spoofchk = true;
    made.trust = false;
    made.link_state = LinkState::auto_;
    made.min_tx_rate_mbps = 0;
    made.max_tx_rate_mbps = 0;
    made.node_guid = Guid{};
    made.port_guid = Guid{};
    return made;
}

VfSpec overlay(VfSpec base, VfSpec const& over) {
    for_each_member([&](VfAttribute, auto member) {
        if (over.*member) base.*member = over.*member;
    });
    return base;
}

bool empty(VfSpec const& spec) {
    bool any = false;
    for_each_member([&](VfAttribute, auto member) { any = any || (spec.*member).has_value(); });
    return !any;
}

template <class F, Of<VfSpec> V>
void fields(F& f, V& spec) {
    for_each_member([&](VfAttribute attribute, auto member) {
        f.maybe(enum_name(attribute).data(), spec.*member);
    });
}

void append_json(std::string& text, VfSpec const& spec) {
    JsonText writer(text);
    fields(writer, spec);
}

void check(JsonReader& reader, VfSpec const& spec) {
    if (spec.mac && spec.mac->zero())
        reader.complain("mac", "must not be the zero address; leave it out to have one chosen");
    else if (spec.mac && spec.mac->multicast())
        reader.complain("mac", "must not be a multicast address: the first octet must be even");
    auto const min = spec.min_tx_rate_mbps.value_or(0);
    auto const max = spec.max_tx_rate_mbps.value_or(0);
    if (max != 0 && min > max)
        reader.complain("min_tx_rate_mbps",
                        fmt::format("must not exceed max_tx_rate_mbps, {}", max));
    if (spec.msix_vectors.value_or(0) > msix_vectors_max)
        reader.complain("msix_vectors", fmt::format("must not exceed {}", msix_vectors_max));
}

void read_reported(JsonReader& reader, VfSpec& spec) {
    for_each_member([&](VfAttribute attribute, auto member) {
        reader.nullable(enum_name(attribute).data(), spec.*member);
    });
}

template struct Json<VfSpec>;

template <class F, Of<VfioHolder> V>
void fields(F& f, V& holder) {
    f.value("pid", holder.pid);
    f.value("comm", holder.comm);
}

template <class F, Of<VfCounters> V>
void fields(F& f, V& counters) {
    f.nullable("rx_packets", counters.rx_packets);
    f.nullable("rx_bytes", counters.rx_bytes);
    f.nullable("rx_dropped", counters.rx_dropped);
    f.nullable("tx_packets", counters.tx_packets);
    f.nullable("tx_bytes", counters.tx_bytes);
    f.nullable("tx_dropped", counters.tx_dropped);
    f.nullable("multicast", counters.multicast);
    f.nullable("broadcast", counters.broadcast);
}

template <class F, Of<VfTraffic> V>
void fields(F& f, V& traffic) {
    f.value("index", traffic.index);
    f.value("counters", traffic.counters);
}

template <class F, Of<PfTraffic> V>
void fields(F& f, V& traffic) {
    f.value("pf", traffic.pf);
    f.value("read_at", traffic.read_at);
    f.value("vfs", traffic.vfs);
    f.nullable("problem", traffic.problem);
    f.defaulted("rdma_hw_counters", traffic.rdma_hw_counters);
}

template <class F, Of<VfioPaths> V>
void fields(F& f, V& vfio) {
    f.nullable("group", vfio.group);
    f.nullable("device", vfio.device);
    f.value("owner", vfio.owner);
}

template <class F, Of<VfState> V>
void fields(F& f, V& vf) {
    f.value("index", vf.index);
    f.value("pci", vf.pci);
    f.nullable("driver", vf.driver);
    f.nullable("iommu_group", vf.iommu_group);
    f.nullable("ifname", vf.ifname);
    f.read_by("settings", vf.settings, read_reported);
    f.defaulted("holders", vf.holders);
    f.maybe("vfio", vf.vfio);
}

template <class F, Of<VfQuarantine> V>
void fields(F& f, V& quarantine) {
    f.value("reason", quarantine.reason);
    f.value("residue", quarantine.residue);
    f.value("vm", quarantine.vm);
    f.value("since", quarantine.since);
}

template <class F, Of<VfView> V>
void fields(F& f, V& view) {
    fields(f, view.vf);
    f.value("pf", view.pf);
    f.value("state", view.state);
    f.nullable("attachment", view.attachment);
    f.nullable("vm", view.vm);
    f.nullable("quarantine", view.quarantine);
    f.defaulted("drift", view.drift);
}

template struct Json<VfCounters>;
template struct Json<VfTraffic>;
template struct Json<PfTraffic>;
template struct Json<VfState>;
template struct Json<VfView>;

}  // namespace vfmgr
