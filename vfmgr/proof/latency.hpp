// SPDX-License-Identifier: Apache-2.0
// The CPU's own counter, to time rounds of a few microseconds. Reading a clock may cost more than a
// round: in a VM whose clock is an emulated HPET each reading leaves the VM. perftest also reads
// the counter, and asks the CPU for its rate; here clock and counter are compared while it counts.
// Pure except the reading; one thread.
#pragma once

#include <sched.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/reachability.hpp"

namespace vfmgr::verify {

[[nodiscard]] inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t count = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;  // no rate can be found, so the clock is used
#endif
}

// Counter and clock at nearly the same moment.
struct Mark {
    std::uint64_t ticks = 0;
    std::uint64_t nanoseconds = 0;
};

// Nanoseconds per tick, if the first and second half of the time agree within 2 %. Nothing if they
// don't, or with fewer than three marks: the counter is no clock here.
[[nodiscard]] std::optional<double> tick_nanoseconds(std::span<Mark const> marks);

// Runs a thread on the CPUs of the NIC's NUMA node, which also places the memory that the thread
// touches first there: across nodes a message takes longer and varies more.

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

// Latency as perftest measures it, one message outstanding: half a round trip of writes that are
// answered by writes, or of sends that are answered by sends; a whole RDMA read. One thread;
// summarise() is pure.

[[nodiscard]] Result<Measured> write_latency(GuestStream& stream, Load const& load,
                                             Deadline deadline);
[[nodiscard]] Result<Measured> read_latency(GuestStream& stream, Load const& load,
                                            Deadline deadline);
[[nodiscard]] Result<Measured> send_latency(GuestStream& stream, Load const& load,
                                            Deadline deadline);

// min, p50, p90, p99, p999 and max in microseconds, and the number of samples; no sample is
// dropped.
[[nodiscard]] std::map<std::string, double> summarise(std::vector<std::uint64_t> nanoseconds);

}  // namespace vfmgr::verify
