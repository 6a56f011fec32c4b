// SPDX-License-Identifier: Apache-2.0
// Names of runs that begin again because the vfmgr-guestd that answered them has ended. A guest
// does a run once, so it gets the run under another name: "<run>-2" for the second try. Values.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "service/guest/guest_vm.hpp"

namespace vfmgr::guestd {

class Retries {
  public:
    // All runs that were pushed before begin again.
    void begin_again();
    // Returns `vms` with the names that their guests know, and forgets runs that are over.
    [[nodiscard]] GuestVms named(GuestVms vms);

  private:
    std::map<std::string, unsigned> tries_;  // by vfmgrd's name of the run, of all that were pushed
};

// vfmgrd's name of it.
[[nodiscard]] std::string original_run(std::string_view name);

}  // namespace vfmgr::guestd
