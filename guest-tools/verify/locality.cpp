// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/locality.hpp"

#include <algorithm>
#include <fstream>

#include "api/types/text.hpp"
#include "guest-tools/verify/netdev_stack.hpp"

namespace vfmgr::verify {

std::optional<cpu_set_t> parse_cpu_list(std::string_view text) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    DigitRules const cpu{.digits_max = 4, .max = CPU_SETSIZE - 1};
    bool more = true;
    while (more) {
        auto const range = text.substr(0, text.find(','));
        more = range.size() < text.size();
        text.remove_prefix(std::min(text.size(), range.size() + 1));
        auto const dash = range.find('-');
        auto const first = parse_digits(range.substr(0, dash), cpu);
        auto const last = dash == range.npos ? first : parse_digits(range.substr(dash + 1), cpu);
        if (!first || !last || *first > *last) return std::nullopt;
        for (auto number = *first; number <= *last; ++number) CPU_SET(number, &cpus);
    }
    return cpus;
}

NearNic::NearNic(std::string const& ifname, std::string const& sysfs) {
    std::ifstream file(pci_netdev(sysfs, ifname) / "device/local_cpulist");
    std::string text;
    auto near = file >> text ? parse_cpu_list(text) : std::nullopt;
    cpu_set_t now;
    if (!near || ::sched_getaffinity(0, sizeof now, &now) != 0) return;
    CPU_AND(&*near, &*near, &now);
    if (CPU_EQUAL(&*near, &now)) return;
    // The kernel refuses an empty set of CPUs.
    if (::sched_setaffinity(0, sizeof *near, &*near) == 0) before_ = now;
}

NearNic::~NearNic() {
    if (before_) ::sched_setaffinity(0, sizeof *before_, &*before_);
}

}  // namespace vfmgr::verify
