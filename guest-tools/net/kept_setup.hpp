// SPDX-License-Identifier: Apache-2.0
// What systemd-networkd or NetworkManager must know about a VF to set it up after a reboot, and not
// to undo until then what vf-guest has set up: both claim a new Ethernet device and start DHCP on
// it. Pure.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/types/guest.hpp"

namespace vfmgr::guest {

// The first line of each file begins with this mark. A file without it is not vf-guest's.
inline constexpr std::string_view network_file_mark = "# Written by vf-guest";

// systemd.network(5). An older systemd (Ubuntu 22.04 has 249) ignores keys that it does not know,
// with a warning.
[[nodiscard]] std::string networkd_text(GuestAttachment const& attachment);
// udev(7): marks the IPoIB interface with the VF's port GUID for networkd. Empty on Ethernet.
[[nodiscard]] std::string udev_text(GuestAttachment const& attachment);
// nm-settings-keyfile(5).
[[nodiscard]] std::string network_manager_text(GuestAttachment const& attachment);

// Keeps a VF's set-up across a reboot of the VM, through the service that configures its networks:
// writes files in /etc and notifies the service. One process at a time.

struct KeptRoots {
    std::filesystem::path etc = "/etc";
    std::filesystem::path run = "/run";
};

class KeptSetup {
  public:
    // Notifies a service by running its own program: {"networkctl", "reload"}.
    using Run = std::function<Result<void>(std::vector<std::string> const&)>;
    KeptSetup(KeptRoots roots, Run run) : roots_(std::move(roots)), run_(std::move(run)) {}

    // Writes a file for each service that has run since the boot, and none for others. Notifies a
    // service only when a file has changed: after a reboot it has read them all. A file of that
    // name that vf-guest did not write stays, with an Error.
    [[nodiscard]] Result<void> keep(GuestAttachment const& attachment) const;
    // Removes what was kept for attachments that the host no longer attaches, even from before a
    // reboot.
    [[nodiscard]] Result<void> keep_only(std::vector<GuestAttachment> const& attached) const;

  private:
    KeptRoots roots_;
    Run run_;
};

// Keeps set-ups in this VM itself, by running its own programs.
[[nodiscard]] KeptSetup kept_in_this_vm();

}  // namespace vfmgr::guest
