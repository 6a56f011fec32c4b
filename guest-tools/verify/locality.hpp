// SPDX-License-Identifier: Apache-2.0
// Runs a thread on the CPUs of the NIC's own NUMA node, and so puts what it touches first there:
// across nodes a message takes longer and varies more.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>

namespace vfmgr::verify {

// As sysfs has it: "0-15,32-47". nullopt for anything else, and for none.
[[nodiscard]] std::optional<cpu_set_t> parse_cpu_list(std::string_view text);

// The calling thread, as long as this lives; its destructor runs on the same one. Changes nothing
// where the NIC's node is not known, or none of its CPUs is this thread's to use.
class NearNic {
  public:
    // The netdev, or the one below it, says it in device/local_cpulist.
    explicit NearNic(std::string const& ifname, std::string const& sysfs = "/sys");
    ~NearNic();
    NearNic(NearNic const&) = delete;
    NearNic& operator=(NearNic const&) = delete;

  private:
    std::optional<cpu_set_t> before_;
};

}  // namespace vfmgr::verify
