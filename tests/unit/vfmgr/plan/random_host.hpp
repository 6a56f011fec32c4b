// SPDX-License-Identifier: Apache-2.0
// Hosts and specs drawn by RapidCheck, on the fakes: vfmgr's attachments come from performed plans;
// others' changes are added beside them. Values; for property tests only.
#pragma once

#include <fmt/format.h>
#include <rapidcheck.h>

#include <vector>

#include "tests/fakes/fake_hypervisor.hpp"
#include "tests/fakes/fake_kernel.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr::drawn {

struct World {
    HostView view;
    DesiredState desired;
    std::map<PciAddress, DriverModel> models;
};

// The fakes, in the state of a World.
struct Fakes {
    FakeKernel kernel;
    FakeHypervisor hypervisor{kernel};

    explicit Fakes(World const& world) : kernel(world.view.kernel) {
        kernel.models = world.models;
        hypervisor.change([&](HypervisorView& view) { view = world.view.hypervisor; });
    }
    Result<Observed> perform(Step const& step) {
        if (auto const* const kernels = std::get_if<KernelStep>(&step))
            return kernel.perform(*kernels, {});
        if (auto const* const vms = std::get_if<HypervisorStep>(&step))
            return hypervisor.perform(*vms, {});
        return Observed{};
    }
    [[nodiscard]] HostView view() const { return {kernel.view(), hypervisor.view()}; }
};

// Drawn as one value: a failure is then reported without every number behind it. `make` is stored
// and run again when a failing case is shrunk: it refers to nothing.
template <class F>
auto draw(F const& make) {
    return *rc::gen::exec(make);
}

// Uniform, whatever RapidCheck's size; shrinks towards 0.
inline int below(int limit) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, limit));
}
inline bool chance(int percent) {
    return below(100) >= 100 - percent;  // shrinks towards false
}
template <class T>
T const& one_of(std::vector<T> const& all) {
    return all.at(static_cast<std::size_t>(below(static_cast<int>(all.size()))));
}
template <class T>
std::optional<T> maybe(int percent, T const& value) {
    return chance(percent) ? std::optional<T>(value) : std::nullopt;
}

inline std::vector<PciAddress> const pf_addresses = {{0, 1, 0, 0}, {0, 2, 0, 0}};
inline PciAddress const no_pf{0, 9, 0, 0};
inline std::vector<std::string> const uuids = {"11111111-1111-1111-1111-111111111111",
                                               "22222222-2222-2222-2222-222222222222",
                                               "33333333-3333-3333-3333-333333333333"};

// Few values, to make them collide: VFs, attachments and specs draw from the same.
inline MacAddress any_mac() {
    if (chance(5)) return make_igb_pf("0000:01:00.0", "enp1s0").info.mac.value();
    return MacAddress{{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(1 + below(30))}};
}
inline VfSpec any_settings(int percent) {
    VfSpec settings;
    if (chance(percent)) settings.mac = any_mac();
    if (chance(percent))
        settings.vlan = Vlan{one_of<std::uint16_t>({0, 100, 200}), static_cast<uint8_t>(below(8)),
                             chance(10) ? VlanProtocol::dot1ad : VlanProtocol::dot1q};
    settings.spoofchk = maybe(percent, chance(50));
    settings.trust = maybe(percent, chance(50));
    settings.link_state = maybe(
        percent / 2, one_of<LinkState>({LinkState::auto_, LinkState::enable, LinkState::disable}));
    settings.min_tx_rate_mbps = maybe(percent / 2, one_of<std::uint32_t>({0, 100}));
    settings.max_tx_rate_mbps = maybe(percent, one_of<std::uint32_t>({0, 1000}));
    settings.node_guid = maybe(percent / 2, Guid{static_cast<std::uint64_t>(1 + below(3))});
    settings.port_guid = maybe(percent / 2, Guid{static_cast<std::uint64_t>(1 + below(3))});
    return settings;
}

// `percent`: how many of the host's PFs carry it.
inline void add_network(World& world, Network network, int percent) {
    network.rdma = chance(60) ? RdmaMode::rxe : RdmaMode::auto_;
    if (chance(20))
        network.ranges = {Range<IpAddress>{network.prefix.address, network.prefix.last()}};
    for (auto const& [pci, pf] : world.view.kernel.pfs) {
        if (!chance(percent) || (network.vlan && pf.info.link_layer == LinkLayer::infiniband))
            continue;
        auto host = network.prefix.address;
        host.octets[3] = static_cast<std::uint8_t>(host.octets[3] + pci.bus);
        network.pfs.push_back({pci, host});
    }
    world.desired.networks[network.name] = {network};
}
// `tiny` has one address for a VM, or none, and sometimes shares the VLAN of `train`.
inline void add_networks(World& world) {
    auto const prefix = [](char const* text) { return IpPrefix::parse(text).value(); };
    add_network(world, {"train", 100, prefix("192.168.101.0/24"), {}, 9000}, 80);
    add_network(world, {"plain", {}, prefix("192.168.51.0/24"), {}, 1500}, 50);
    std::uint16_t const vlan = chance(50) ? 100 : 200;
    add_network(world, {"tiny", vlan, prefix("192.168.61.0/30"), {}, 1500}, 40);
}

inline void any_interfaces(PfState& pf) {
    auto& untagged = pf.interfaces.front();
    untagged.up = pf.info.up = chance(50);
    untagged.mtu = pf.info.mtu = chance(30) ? 9000 : 1500;
    if (chance(20))
        untagged.addresses.push_back(
            IpAddress::parse(fmt::format("192.168.51.{}", pf.info.pci.bus)).value());
    // A VLAN device that an admin made.
    if (!chance(25)) return;
    HostInterface theirs;
    theirs.id = {pf.info.pci, chance(70) ? 100 : 300};
    theirs.ifname = fmt::format("{}.{}", pf.info.ifname, *theirs.id.vlan);
    theirs.up = untagged.up && chance(70);
    theirs.mtu = chance(50) ? untagged.mtu : 1400;
    if (chance(30))
        theirs.addresses.push_back(
            IpAddress::parse(fmt::format("192.168.101.{}", pf.info.pci.bus)).value());
    for (auto const& address : theirs.addresses) theirs.prefixes.push_back({address, 32});
    pf.interfaces.push_back(std::move(theirs));
}

inline std::vector<std::string> member_names() {
    std::vector<std::string> names;
    for (auto const& [attribute, name] : enum_names<VfAttribute>) names.emplace_back(name);
    return names;
}

inline void add_pf(World& world, PciAddress const& pci) {
    // Half of the hosts refuse little, which leaves something to judge.
    auto const& model = chance(50) ? driver_model("obliging") : one_of(driver_models());
    auto pf = make_pf(model, to_string(pci), fmt::format("enp{}s0", pci.bus));
    pf.info.total_vfs = static_cast<std::uint16_t>(chance(80) ? 7 : 1 + below(7));
    pf.info.carrier = chance(80);
    if (chance(15)) {
        pf.info.rdma_device = "mlx5_0";
    } else if (chance(10)) {
        pf.info.rdma_device = "rxe_of_somebody";
        pf.info.rdma_driver = "rxe";
    }
    world.view.kernel.pfs[pci] = std::move(pf);
    world.models[pci] = model;
    Fakes fakes(world);
    int const total = world.view.kernel.pfs[pci].info.total_vfs;
    auto const count = static_cast<std::uint16_t>(chance(10)   ? 0
                                                  : chance(15) ? below(total + 1)
                                                               : total);
    fakes.perform(SetNumVfs{pci, count}).value();
    ConfigureVfs earlier{pci, {}, member_names()};
    for (std::uint16_t i = 0; i < count; ++i) earlier.changes.push_back({i, any_settings(8)});
    fakes.perform(earlier).value();
    world.view = fakes.view();
    any_interfaces(world.view.kernel.pfs[pci]);
    for (auto& vf : world.view.kernel.pfs[pci].vfs) {
        if (chance(2)) vf.iommu_group.reset();
        if (chance(30)) vf.driver = model.vf_driver;
        if (vf.driver) vf.ifname = fmt::format("enp{}s0v{}", pci.bus, vf.index);
    }
    if (chance(2)) return;
    auto& desired_pf = world.desired.pfs[pci];
    desired_pf.spec = {chance(98) ? PfMode::manage : PfMode::observe, maybe(80, count),
                       maybe(15, std::string("vfio-pci"))};
}

inline void add_vm(World& world, std::string const& uuid) {
    auto vm = make_vm(fmt::format("vm{}", uuid.front()), uuid);
    vm.persistent = chance(90);
    vm.free_pcie_ports = chance(10) ? 0 : 4;
    if (chance(30)) vm.has_vsock = false;
    if (!vm.has_vsock || chance(30)) vm.vsock_cid.reset();
    if (vm.persistent && chance(30)) {
        vm.state = VmState::shut_off;
        vm.start_id.reset();
        vm.vsock_cid.reset();
    }
    world.view.hypervisor.vms[uuid] = std::move(vm);
}

inline PciAddress any_pf(World const& world) {
    if (chance(1)) return no_pf;
    std::vector<PciAddress> all;
    for (auto const& [pci, pf] : world.view.kernel.pfs) all.push_back(pci);
    return one_of(all);
}

inline AttachmentSpec any_attachment(World const& world) {
    AttachmentSpec spec;
    spec.vm = chance(2) ? "nobody" : chance(50) ? one_of(uuids) : one_of(uuids).substr(0, 1);
    if (spec.vm.size() == 1) spec.vm = "vm" + spec.vm;
    spec.pf = any_pf(world);
    spec.vf = maybe(8, static_cast<std::uint16_t>(below(8)));
    std::vector<std::string> carried;
    for (auto const& [name, each] : world.desired.networks)
        if (host_address_on(each.network, *spec.pf)) carried.push_back(name);
    if (!carried.empty() && chance(70)) spec.network = one_of(carried);
    if (spec.network && !spec.vf && chance(20)) spec.pf.reset();
    if (chance(3)) spec.network = "nowhere";
    if (spec.network && chance(15))
        spec.address = IpAddress::parse(fmt::format("192.168.101.{}", below(7))).value();
    spec.settings = any_settings(chance(50) ? 40 : 5);
    if (spec.network && chance(80)) spec.settings.vlan.reset();  // the network sets it
    for (auto const& member : member_names())
        if (chance(25)) spec.best_effort.emplace_back(member);
    spec.persistence = chance(70)   ? Persistence::auto_
                       : chance(50) ? Persistence::live
                                    : Persistence::config;
    if (chance(15)) spec.verify = chance(50) ? VerifyMode::background : VerifyMode::required;
    return spec;
}

// As the engine does: plan, perform all, save. A refused request changes nothing.
inline void attach(World& world, std::string const& id) {
    auto const spec = any_attachment(world);
    auto planned = plan_attachment(world.view, world.desired, id, spec, "seed");
    if (!planned) return;
    Fakes fakes(world);
    for (auto const& step : planned->plan.steps)
        if (!fakes.perform(step)) return;
    world.view = fakes.view();
    planned->attachment.state = AttachmentState::attached;
    world.desired.pfs[planned->attachment.vf.pf].base = planned->base;
    world.desired.attachments[id] = planned->attachment;
}

// Only vfmgr has used its VFs.
inline World quiet_world() {
    World world;
    for (auto const& pci : pf_addresses)
        if (pci == pf_addresses.front() || chance(30)) add_pf(world, pci);
    add_networks(world);
    for (auto const& uuid : uuids) add_vm(world, uuid);
    for (int attachment = 0, attachments = 1 + below(5); attachment < attachments; ++attachment)
        attach(world, fmt::format("aaaa000{}", attachment));
    return world;
}

// Another user has this VF: a process, or a VM that vfmgr attached nothing to.
inline void take(World& world, VfId const& id, VfState& vf) {
    auto& stranger = world.view.hypervisor.vms["99999999-9999-9999-9999-999999999999"];
    if (stranger.name.empty())
        stranger = make_vm("stranger", "99999999-9999-9999-9999-999999999999");
    bool const attached = std::ranges::any_of(
        world.desired.attachments, [&](auto const& entry) { return entry.second.vf == id; });
    if (chance(60)) stranger.config.push_back({vf.pci, {}});
    if (vf.holders.empty() && chance(50)) {
        vf.driver = chance(80) ? "vfio-pci" : "mlx5_vfio_pci";
        vf.ifname.reset();
        vf.holders.push_back({4001, chance(50) ? "qemu-system-x86" : "dpdk-testpmd"});
        if (vf.holders.back().comm.starts_with("qemu")) stranger.live.push_back({vf.pci, {}});
    }
    if (!attached && chance(20)) {
        world.desired.quarantine[id].vf = id;
        world.desired.quarantine[id].reason = "FLR failed";
    }
}

inline World any_world() {
    auto world = quiet_world();
    for (auto& [pci, pf] : world.view.kernel.pfs) {
        bool const crowded = chance(50);
        for (auto& vf : pf.vfs)
            if (crowded && chance(50)) take(world, {pci, vf.index}, vf);
        pf.stale = chance(2);
        if (pf.stale) pf.stale_reason = "no answer for 60 s";
    }
    if (chance(15))
        world.view.kernel.routes.push_back({IpPrefix::parse("192.168.50.0/23").value(), "eno1"});
    world.view.hypervisor.stale = chance(2);
    if (world.view.hypervisor.stale) world.view.hypervisor.stale_reason = "connection refused";
    return world;
}

inline std::pair<PciAddress, PfSpec> any_pf_spec(World const& world) {
    auto const pf = any_pf(world);
    PfSpec spec;
    if (auto const now = world.desired.pfs.find(pf); now != world.desired.pfs.end())
        spec = now->second.spec;
    spec.mode = chance(15) ? PfMode::observe : PfMode::manage;
    if (chance(60)) spec.num_vfs = maybe(90, static_cast<std::uint16_t>(below(9)));
    if (chance(25)) spec.vf_driver = "vfio-pci";
    return {pf, spec};
}

// A host, and several specs for its current state.
template <auto AnySpec>
auto with_specs() {
    auto world = any_world();
    std::vector<decltype(AnySpec(world))> configured;
    while (configured.size() < 5) configured.push_back(AnySpec(world));
    return std::pair(std::move(world), std::move(configured));
}

}  // namespace vfmgr::drawn
