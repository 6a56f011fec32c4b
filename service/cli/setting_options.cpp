// SPDX-License-Identifier: Apache-2.0
#include "service/cli/setting_options.hpp"

#include <CLI/CLI.hpp>

#include "service/cli/choice.hpp"

namespace vfmgr {

void add_changeable_settings(CLI::App& command, AttachArguments& arguments) {
    command.add_option("--mac", arguments.mac, "MAC of the VF (default: a stable one is chosen)");
    command.add_option("--vlan", arguments.vlan,
                       "ID[:QOS[:PROTO]], PROTO 802.1q or 802.1ad (default: the network's)");
    command
        .add_option("--trust", arguments.trust, "let the VM change its MAC and promiscuous mode")
        ->check(on_or_off());
    command.add_option("--spoofchk", arguments.spoofchk, "drop frames with another source MAC")
        ->check(on_or_off());
    command.add_option("--link-state", arguments.link_state, "state of the VF's link")
        ->check(one_of<LinkState>());
    command.add_option("--query-rss", arguments.query_rss, "let the VM query the PF's RSS setting")
        ->check(on_or_off());
    command.add_option("--min-tx-rate", arguments.min_tx_rate_mbps, "guaranteed rate in Mbit/s");
    command.add_option("--max-tx-rate", arguments.max_tx_rate_mbps,
                       "highest rate in Mbit/s; 0: no limit");
}

void add_settings(CLI::App& command, AttachArguments& arguments) {
    add_changeable_settings(command, arguments);
    command.add_option("--roce", arguments.roce, "RoCE; needs the NIC in switchdev mode")
        ->check(on_or_off());
    command.add_option("--node-guid", arguments.node_guid, "node GUID of the VF (InfiniBand)");
    command.add_option("--port-guid", arguments.port_guid, "port GUID of the VF (InfiniBand)");
    command.add_option("--msix-vectors", arguments.msix_vectors,
                       "interrupt vectors of the VF; 0: the driver's default");
}

void add_placing(CLI::App& command, AttachArguments& arguments) {
    command
        .add_option("--guest-address", arguments.guest_address,
                    "PCI address in the VM, as in libvirt's XML (default: libvirt chooses)")
        ->type_name("ADDRESS");
    command.add_flag("--add-ports", arguments.add_ports,
                     "without a free PCIe port, attach for the VM's next start");
    command.add_flag("--add-vsock", arguments.add_vsock,
                     "give a VM without a vsock device one, to report over");
    command
        .add_option("--guest-plane", arguments.guest_plane,
                    "how the guest reports: vsock (the default), or tcp over the VF itself")
        ->check(one_of<GuestTransport>());
}

void add_best_effort(CLI::App& command, AttachArguments& arguments) {
    command
        .add_option("--best-effort", arguments.best_effort, "setting that the driver may refuse")
        ->check(one_of<VfAttribute>())
        ->expected(1)
        ->take_all();
}

void add_unset(CLI::App& command, AttachArguments& arguments, std::string const& help) {
    command.add_option("--unset", arguments.unset, help)
        ->check(one_of<VfAttribute>())
        ->expected(1)
        ->take_all();
}

void add_proof(CLI::App& command, AttachArguments& arguments, char const* help) {
    command.add_flag("--verify", arguments.verify, help);
    command.add_option("--verify-timeout", arguments.verify_timeout_seconds,
                       "seconds to wait for the proof");
    command.add_option("--verify-profile", arguments.verify_profile, "how much is tested")
        ->check(one_of<Profile>());
}

void add_repeated_proof(CLI::App& command, AttachArguments& arguments) {
    command.add_option(
        "--verify-every", arguments.verify_every_seconds,
        "repeat the proof at this interval in seconds, at least 60 (default: never)");
}

}  // namespace vfmgr
