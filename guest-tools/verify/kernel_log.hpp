// SPDX-License-Identifier: Apache-2.0
// Kernel log lines during the tests, as far as the fault dictionary knows them. Reads /dev/kmsg
// (Documentation/ABI/testing/dev-kmsg), which needs root or CAP_SYSLOG; without it nothing is
// found. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/os/descriptor.hpp"
#include "guest-tools/verify/faults.hpp"

namespace vfmgr::verify {

struct LoggedFault {
    std::string line;
    Fault fault;
};

// "6,1234,5678,-;igbvf 0000:00:05.0: Link is Down\n SUBSYSTEM=pci\n": returns the text between;
// nullopt if it is not a record.
[[nodiscard]] std::optional<std::string_view> text_of_record(std::string_view record);

class KernelLog {
  public:
    // Starts with records logged from now on.
    [[nodiscard]] static KernelLog follow(std::string const& path = "/dev/kmsg");
    // Returns the first line since then that the dictionary knows and that contains one of `names`;
    // a fault of the whole machine needs no name. Nothing if there is none.
    [[nodiscard]] std::optional<LoggedFault> find(std::vector<std::string> const& names);

  private:
    FileDescriptor log_;
};

// Names that kernel drivers use for a netdev: its own name, and its PCI address.
[[nodiscard]] std::vector<std::string> names_in_log(std::string const& ifname,
                                                    std::string const& sysfs = "/sys");

}  // namespace vfmgr::verify
