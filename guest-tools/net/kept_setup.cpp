// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/kept_setup.hpp"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/file.hpp"
#include "guest-tools/net/configure.hpp"
#include "guest-tools/net/find_vf.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::guest {
namespace {

std::string first_line(GuestAttachment const& attachment) {
    return fmt::format("{} for attachment {}; it is removed with it.\n", network_file_mark,
                       attachment.attachment);
}

std::string with_length(GuestAttachment const& attachment) {
    return fmt::format("{}/{}", to_string(attachment.address), attachment.prefix_length);
}

bool is_v4(GuestAttachment const& attachment) {
    return attachment.address.family == IpAddress::Family::v4;
}

constexpr char const* ib_property = "VF_GUEST_ATTACHMENT";  // udev's, set by udev_text()

// How networkd finds the netdev.
std::string networkd_match(GuestAttachment const& attachment) {
    if (attachment.guid)
        return fmt::format("Type=infiniband\nProperty={}={}\n", ib_property, attachment.attachment);
    return fmt::format("MACAddress={}\nType=ether\nDriver=!virtio_net\n",
                       to_string(attachment.mac.value_or(MacAddress{})));
}

// NetworkManager compares the last 8 of IPoIB's 20 bytes, which are the GUID; the others change
// when the driver is bound again (nm_utils_hwaddr_matches()).
std::string network_manager_match(GuestAttachment const& attachment) {
    if (attachment.guid)
        return fmt::format(
            "[infiniband]\nmac-address=80:00:00:00:fe:80:00:00:00:00:00:00:{}\nmtu={}\n"
            "transport-mode=datagram\n\n",
            to_string(*attachment.guid), attachment.mtu);
    return fmt::format("[ethernet]\nmac-address={}\nmtu={}\n\n",
                       to_string(attachment.mac.value_or(MacAddress{})), attachment.mtu);
}

}  // namespace

// networkd can match no part of an address, and IPoIB's first bytes are a queue pair's number,
// which is another after each boot. "parent" is the file of IPoIB's interfaces for other
// partitions.
std::string udev_text(GuestAttachment const& attachment) {
    if (!attachment.guid) return {};
    return first_line(attachment) +
           fmt::format(
               "SUBSYSTEM==\"net\", ACTION!=\"remove\", ATTR{{type}}==\"32\", "
               "ATTR{{address}}==\"*:{}\", TEST!=\"parent\", ENV{{{}}}=\"{}\"\n",
               to_string(*attachment.guid), ib_property, attachment.attachment);
}

// [Match]: the MAC is the VF's own and the only property that stays; VLAN devices and bonds on top
// of it (another Type) and the virtio NIC of a failover pair have the same one.
// [Link]: a VF without carrier must not delay a boot (systemd-networkd-wait-online).
// [Network]: keeps addresses that vf-guest set before networkd manages the netdev. Without a
// carrier, networkd would remove everything again. No other addresses: the peers know this one.
// [Route], [RoutingPolicyRule]: as vf-guest creates them (source_route.hpp); networkd removes rules
// that its files do not have, and such routes on its links.
std::string networkd_text(GuestAttachment const& attachment) {
    auto const table = source_table(attachment.address);
    return first_line(attachment) + fmt::format("[Match]\n{}\n", networkd_match(attachment)) +
           fmt::format("[Link]\nMTUBytes={}\nRequiredForOnline=no\n\n", attachment.mtu) +
           fmt::format(
               "[Network]\nAddress={}\nLinkLocalAddressing={}\nIPv6AcceptRA=no\n"
               "ConfigureWithoutCarrier=yes\nKeepConfiguration=static\n\n",
               with_length(attachment), is_v4(attachment) ? "no" : "ipv6") +
           fmt::format("[Route]\nDestination={}\n{}PreferredSource={}\nTable={}\n\n",
                       to_string(network_of(attachment.address, attachment.prefix_length)),
                       is_v4(attachment) ? "Scope=link\n" : "", to_string(attachment.address),
                       table) +
           fmt::format("[RoutingPolicyRule]\nFrom={}/{}\nTable={}\nPriority={}\n",
                       to_string(attachment.address), attachment.address.bits(), table,
                       source_rule_priority);
}

// The priority is above that of profiles that NetworkManager generates for a new Ethernet device
// (-999) and of profiles for any device (0). mac-address is the permanent one, which the host sets
// for a VF.
std::string network_manager_text(GuestAttachment const& attachment) {
    auto const table = source_table(attachment.address);
    auto const* const used = is_v4(attachment) ? "ipv4" : "ipv6";
    auto const* const unused = is_v4(attachment) ? "ipv6" : "ipv4";
    return first_line(attachment) +
           fmt::format("[connection]\nid=vf-guest-{}\ntype={}\nautoconnect-priority=100\n\n",
                       attachment.attachment, attachment.guid ? "infiniband" : "ethernet") +
           network_manager_match(attachment) +
           fmt::format(
               "[{}]\nmethod=manual\naddress1={}\nnever-default=true\nroute1={}\n"
               "route1_options=table={}\nrouting-rule1=priority {} from {} table {}\n\n",
               used, with_length(attachment),
               to_string(network_of(attachment.address, attachment.prefix_length)), table,
               source_rule_priority, to_string(attachment.address), table) +
           fmt::format("[{}]\nmethod=disabled\n", unused);
}

namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds service_time{15};
using Command = std::vector<std::string>;

// A service that may configure the VM's networks.
struct NetworkService {
    char const* runs;    // below /run; created by the service when it starts, not before
    char const* folder;  // below /etc
    char const* prefix;  // of the file's name; followed by the attachment
    char const* suffix;
    mode_t mode;
    std::string (*text)(GuestAttachment const&);  // empty: no file is needed
    Command (*written)(std::string const& path);
    Command (*used)(std::string const& name);  // may fail: the device need not exist yet
    Command removed;
};

// networkd uses the first file that matches: files for any Ethernet device begin with 10 (netplan,
// cloud-init) to 99, and 05 sorts before them. Each service is notified at once: until the next
// boot, networkd would otherwise keep using one of those files, and NetworkManager a profile that
// it generated for the new device. What networkd-state-file.c writes and NetworkManager's NMRUNDIR
// show that they have run since the boot; both stay when the service stops.
// udev's rule comes first: networkd's file refers to it.
std::array<NetworkService, 3> services() {
    return {{{"udev/control",
              "udev/rules.d",
              "70-vf-guest-",
              ".rules",
              0644,
              udev_text,
              [](auto const&) { return Command{"udevadm", "control", "--reload"}; },
              [](auto const&) {
                  return Command{"udevadm", "trigger", "--settle", "--action=change",
                                 "--subsystem-match=net"};
              },
              {"udevadm", "control", "--reload"}},
             {"systemd/netif/state",
              "systemd/network",
              "05-vf-guest-",
              ".network",
              0644,
              networkd_text,
              [](auto const&) { return Command{"networkctl", "reload"}; },
              nullptr,
              {"networkctl", "reload"}},
             {"NetworkManager",
              "NetworkManager/system-connections",
              "vf-guest-",
              ".nmconnection",
              0600,
              network_manager_text,
              [](auto const& path) { return Command{"nmcli", "connection", "load", path}; },
              [](auto const& name) {
                  return Command{"nmcli", "--wait", "10", "connection", "up", name};
              },
              {"nmcli", "connection", "reload"}}}};
}

Error kept_failed(fs::path const& file, std::vector<Cause> causes) {
    return {Problem::unavailable,
            fmt::format(
                "{} can't be written: after a reboot the VF is not set up until vf-guest starts",
                file.string()),
            "make /etc writable for vf-guest (ReadWritePaths= in its unit)", std::move(causes)};
}

}  // namespace

Result<void> KeptSetup::keep(GuestAttachment const& attachment) const {
    if (!fits_file_name(attachment.attachment, "-_"))
        return fail(Problem::invalid_request,
                    "the host sent an attachment with characters that a file name can't have",
                    "update vfmgrd on the host");
    for (auto const& service : services()) {
        if (std::error_code ignored; !fs::exists(roots_.run / service.runs, ignored)) continue;
        auto const file =
            roots_.etc / service.folder / (service.prefix + attachment.attachment + service.suffix);
        auto const text = service.text(attachment);
        if (text.empty()) continue;
        auto const had = read_file(file);
        if (had == text) continue;
        if (had && !had->starts_with(network_file_mark))
            return fail(
                Problem::conflict,
                fmt::format("{} was not written by vf-guest, so the VF's set-up is not kept there",
                            file.string()),
                "rename that file");
        std::error_code ignored;
        fs::create_directories(file.parent_path(), ignored);
        if (auto written = replace_file(file, text, service.mode); !written)
            return fail(kept_failed(file, std::move(written.error().causes)));
        VFMGR_CHECK(run_(service.written(file.string())));
        if (service.used)
            static_cast<void>(run_(service.used("vf-guest-" + attachment.attachment)));
    }
    return {};
}

Result<void> KeptSetup::keep_only(std::vector<GuestAttachment> const& attached) const {
    for (auto const& service : services()) {
        bool removed = false;
        for (auto const& file : paths_in(roots_.etc / service.folder)) {
            auto const name = file.filename().string();
            auto const is_this = [&](GuestAttachment const& one) {
                return service.prefix + one.attachment + service.suffix == name;
            };
            if (!name.starts_with(service.prefix) || std::ranges::any_of(attached, is_this))
                continue;
            auto const text = read_file(file);
            if (!text || !text->starts_with(network_file_mark)) continue;
            if (::unlink(file.c_str()) != 0)
                return fail(kept_failed(file, {errno_cause("unlink", errno)}));
            removed = true;
        }
        std::error_code ignored;
        if (removed && fs::exists(roots_.run / service.runs, ignored))
            VFMGR_CHECK(run_(service.removed));
    }
    return {};
}

KeptSetup kept_in_this_vm() {
    return {KeptRoots(), [](std::vector<std::string> const& command) {
                return run_program(command, std::chrono::steady_clock::now() + service_time);
            }};
}

}  // namespace vfmgr::guest
