// SPDX-License-Identifier: Apache-2.0
// What the kernel said while we tested, as far as the fault dictionary knows it. Reads /dev/kmsg
// (Documentation/ABI/testing/dev-kmsg), which needs root or CAP_SYSLOG; without it nothing is said.
// One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/file_descriptor.hpp"
#include "guest-tools/verify/faults.hpp"

namespace vfmgr::verify {

struct Said {
    std::string line;
    Fault fault;
};

// "6,1234,5678,-;igbvf 0000:00:05.0: Link is Down\n SUBSYSTEM=pci\n": the text between; nullopt for
// what is no record.
[[nodiscard]] std::optional<std::string_view> text_of_record(std::string_view record);

class KernelLog {
  public:
    // From now on.
    [[nodiscard]] static KernelLog follow(std::string const& path = "/dev/kmsg");
    // The first line since then that the dictionary knows and that names one of these; of what
    // concerns the whole machine no name is needed. Nothing when there is none.
    [[nodiscard]] std::optional<Said> find(std::vector<std::string> const& names);

  private:
    FileDescriptor log_;
};

// By which the kernel's drivers name a netdev: its own name, and its PCI address.
[[nodiscard]] std::vector<std::string> names_in_log(std::string const& ifname,
                                                    std::string const& sysfs = "/sys");

}  // namespace vfmgr::verify
