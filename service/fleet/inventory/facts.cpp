// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/facts.hpp"

#include "service/fleet/inventory/fields.hpp"

namespace vfmgr::fleet {
namespace {

void read(Fields& f, PfFacts& pf) {
    auto info = f.object("info");
    info.need("pci", pf.pci);
    info.maybe("ifname", pf.ifname);
    info.maybe("driver", pf.driver);
    info.maybe("link_layer", pf.link_layer);
    info.maybe("pci_ids", pf.pci_ids);
    info.maybe("numa_node", pf.numa_node);
    info.maybe("pcie_root", pf.pcie_root);
    info.maybe("rdma_device", pf.rdma_device);
    info.maybe("rdma_driver", pf.rdma_driver);
    info.need("num_vfs", pf.num_vfs);
    info.need("total_vfs", pf.total_vfs);
    info.need("up", pf.up);
    info.need("carrier", pf.carrier);
    f.need("stale", pf.stale);
    f.maybe("pci_busy", pf.pci_busy);
    pf.stuck = f.given("stuck");  // a sentence of any length
    f.object("standing").need_word("is", pf.standing);
    auto spec = f.object("spec");
    spec.maybe("mode", pf.mode);
    spec.words("labels", pf.labels);
    f.list("networks", pf.networks);
}

void read(Fields& f, VfFacts& vf) {
    f.need("pf", vf.id.pf);
    f.need("index", vf.id.index);
    f.need_word("state", vf.state);
    f.maybe("attachment", vf.attachment);
    f.maybe("vm", vf.vm);
}

void read(Fields& f, VmFacts& vm) {
    f.need("uuid", vm.uuid);
    f.need("name", vm.name);
    f.need_word("state", vm.state);
    f.maybe("free_pcie_ports", vm.free_pcie_ports);
}

void read(Fields& f, AttachmentFacts& attachment) {
    f.need("id", attachment.id);
    f.need("vf", attachment.vf);
    f.need("vm", attachment.vm);
    f.need("vm_uuid", attachment.vm_uuid);
    auto spec = f.object("spec");
    spec.maybe("network", attachment.network);
    spec.maybe("pool", attachment.pool);
    spec.maybe("reservation", attachment.reservation);
    auto settings = f.object("settings");
    settings.maybe("mac", attachment.mac);
    settings.maybe("node_guid", attachment.node_guid);
    settings.maybe("port_guid", attachment.port_guid);
    f.maybe("address", attachment.address);
    f.need_word("state", attachment.state);
    f.maybe("created_at", attachment.created_at);
    f.object("verification").maybe("verdict", attachment.verdict);
}

void read(Fields& f, NetworkFacts& network) {
    f.need("name", network.name);
    f.maybe("vlan", network.vlan);
    f.each_of("pfs", [&](std::string_view one) {
        std::string complaint;
        Fields pf(one, "pfs/", complaint);
        pf.need("pf", network.pfs.emplace_back());
        if (!complaint.empty()) f.complain("pfs", complaint);
    });
}

void read(Fields& f, PoolFacts& pool) {
    f.need("name", pool.name);
    f.object("defaults").maybe("network", pool.network);
}

void read(Fields& f, ReservationFacts& reservation) {
    f.need("name", reservation.name);
    auto spec = f.object("spec");
    spec.maybe("pool", reservation.pool);
    spec.maybe("network", reservation.network);
    f.maybe("tenant", reservation.tenant);
    f.each_of("vfs",
              [&](std::string_view one) { f.element("vfs", one, reservation.vfs.emplace_back()); });
    f.maybe("expires_at", reservation.expires_at);
}

// A cursor has room for a host's name and such a key.
constexpr std::size_t key_bytes_max = 128;

void check_key(Fields& f, std::string const& key) {
    if (key.empty()) f.complain("", "has an empty name");
    if (key.size() > key_bytes_max) f.complain("", "has a name that is too long");
}
template <class Key>
void check_key(Fields&, Key const&) {}

template <class Facts>
Result<Facts> facts_of(std::string_view item) {
    std::string complaint;
    Fields fields(item, "", complaint);
    Facts facts;
    read(fields, facts);
    if (fields.has("host")) fields.complain("host", "is the fleet's member");
    if (complaint.empty()) check_key(fields, key_of(facts));
    if (!complaint.empty())
        return fail(Problem::invalid_request, complaint, "upgrade the host or vfmgr-fleetd");
    if constexpr (std::is_same_v<Facts, AttachmentFacts>) {
        auto const run = fields.slice("verification");
        if (!is_object(run)) return facts;
        facts.run_at = static_cast<std::uint32_t>(run.data() - item.data());
        facts.run_bytes = static_cast<std::uint32_t>(run.size());
    }
    return facts;
}

}  // namespace

template <>
Result<PfFacts> read_facts(std::string_view item) {
    return facts_of<PfFacts>(item);
}
template <>
Result<VfFacts> read_facts(std::string_view item) {
    return facts_of<VfFacts>(item);
}
template <>
Result<VmFacts> read_facts(std::string_view item) {
    return facts_of<VmFacts>(item);
}
template <>
Result<AttachmentFacts> read_facts(std::string_view item) {
    return facts_of<AttachmentFacts>(item);
}
template <>
Result<NetworkFacts> read_facts(std::string_view item) {
    return facts_of<NetworkFacts>(item);
}
template <>
Result<PoolFacts> read_facts(std::string_view item) {
    return facts_of<PoolFacts>(item);
}
template <>
Result<ReservationFacts> read_facts(std::string_view item) {
    return facts_of<ReservationFacts>(item);
}

}  // namespace vfmgr::fleet
