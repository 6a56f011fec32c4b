// SPDX-License-Identifier: Apache-2.0
// What systemd-networkd or NetworkManager must know of a VF, so that it sets the VF up after a
// reboot and does not undo until then what vf-guest has set up: both take a new Ethernet device for
// theirs and ask DHCP. Pure.
#pragma once

#include <string>

#include "api/types/guest.hpp"

namespace vfmgr::guest {

// The first line of both begins with it: what does not is somebody else's.
inline constexpr std::string_view network_file_mark = "# Written by vf-guest";

// systemd.network(5). Keys that an older systemd does not know (Ubuntu 22.04 has 249) it leaves out
// with a warning.
[[nodiscard]] std::string networkd_text(GuestAttachment const& attachment);
// nm-settings-keyfile(5).
[[nodiscard]] std::string network_manager_text(GuestAttachment const& attachment);

}  // namespace vfmgr::guest
