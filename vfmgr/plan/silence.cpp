// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/silence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace vfmgr {
namespace {

using Count = std::optional<std::uint64_t>;

// A counter that was cleared meanwhile counts from 0.
Count grown(VfCounted const& counted, Count VfCounters::* member) {
    auto const before = counted.before ? (*counted.before).*member : std::nullopt;
    auto const after = counted.after ? (*counted.after).*member : std::nullopt;
    if (!before || !after) return std::nullopt;
    return *after >= *before ? *after - *before : *after;
}

std::string traffic(Attachment const& attachment, VfCounted const& counted) {
    auto const sent = grown(counted, &VfCounters::tx_packets);
    auto const received = grown(counted, &VfCounters::rx_packets);
    if (!sent) return "the PF's driver counts no packets of its VFs";
    auto const came = received ? fmt::format(", and its VF received {}", *received) : std::string();
    if (*sent == 0) return "the VM sent nothing over this VF since the run began" + came;
    auto const from = attachment.address ? to_string(*attachment.address) : "its address";
    return fmt::format("the VM sent {} packets over this VF{}, but no request from {} came", *sent,
                       came, from);
}

std::string_view enrolment(GuestKeys const* keys) {
    if (keys && !keys->keys.empty()) return "its guest has a key";
    if (keys && keys->token) return "its guest has not used the token of its enrolment";
    return "its guest was never given an enrolment (vfctl attachment enrolment)";
}

bool is_let_in(HostInterface const& interface, Attachment const& attachment) {
    auto const found = std::ranges::find_if(interface.closed, [&](ClosedVm const& vm) {
        return attachment.address == vm.address && attachment.settings.mac == vm.mac;
    });
    return found != interface.closed.end() && found->guest_plane;
}

}  // namespace

std::string silence_of(Attachment const& attachment, VfCounted const& counted, HostView const& host,
                       DesiredState const& desired) {
    std::vector<std::string> known{traffic(attachment, counted)};
    if (auto const* const pf = find_pf(host, attachment.vf.pf); pf && !pf->info.carrier)
        known.push_back(fmt::format("{} has no carrier", display_name(pf->info)));
    auto const* const vf = find_vf(host, attachment.vf);
    if (vf && vf->settings.link_state == LinkState::disable)
        known.emplace_back("the VF's link_state is disable");
    if (vf && vf->holders.empty()) known.emplace_back("no process has the VF open");
    auto const carried = network_of(desired.networks, attachment);
    auto const* const interface =
        carried ? find_interface(host, InterfaceId{attachment.vf.pf, carried->network->vlan})
                : nullptr;
    if (!interface || !is_let_in(*interface, attachment))
        known.emplace_back("the host's filter does not let it in");
    auto const keys = desired.guest_keys.find(attachment.id);
    known.emplace_back(enrolment(keys == desired.guest_keys.end() ? nullptr : &keys->second));
    return fmt::format("{}", fmt::join(known, "; "));
}

}  // namespace vfmgr
