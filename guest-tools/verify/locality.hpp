// SPDX-License-Identifier: Apache-2.0
// Runs a thread on the CPUs of the NIC's NUMA node, which also places the memory that the thread
// touches first there: across nodes a message takes longer and varies more.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>

namespace vfmgr::verify {

// Parses sysfs's format: "0-15,32-47". nullopt for anything else, and for an empty list.
[[nodiscard]] std::optional<cpu_set_t> parse_cpu_list(std::string_view text);

// Moves the calling thread for the lifetime of this object; the destructor must run on the same
// thread. Changes nothing where the NIC's node is unknown, or this thread may use none of its CPUs.
class NearNic {
  public:
    // Reads device/local_cpulist of the netdev, or of the one below it.
    explicit NearNic(std::string const& ifname, std::string const& sysfs = "/sys");
    ~NearNic();
    NearNic(NearNic const&) = delete;
    NearNic& operator=(NearNic const&) = delete;

  private:
    std::optional<cpu_set_t> before_;
};

}  // namespace vfmgr::verify
