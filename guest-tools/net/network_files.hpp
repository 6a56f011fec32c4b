// SPDX-License-Identifier: Apache-2.0
// What systemd-networkd or NetworkManager must know about a VF to set it up after a reboot, and not
// to undo until then what vf-guest has set up: both claim a new Ethernet device and start DHCP on
// it. Pure.
#pragma once

#include <string>

#include "api/types/guest.hpp"

namespace vfmgr::guest {

// The first line of both files begins with this mark. A file without it is not vf-guest's.
inline constexpr std::string_view network_file_mark = "# Written by vf-guest";

// systemd.network(5). An older systemd (Ubuntu 22.04 has 249) ignores keys that it does not know,
// with a warning.
[[nodiscard]] std::string networkd_text(GuestAttachment const& attachment);
// nm-settings-keyfile(5).
[[nodiscard]] std::string network_manager_text(GuestAttachment const& attachment);

}  // namespace vfmgr::guest
