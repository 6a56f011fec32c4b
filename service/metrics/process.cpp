// SPDX-License-Identifier: Apache-2.0
#include "service/metrics/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace vfmgr {
namespace {

double seconds_of(timeval const& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::size_t open_descriptors() {
    std::error_code error;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator each("/proc/self/fd", error), end;
         !error && each != end; each.increment(error))
        ++count;
    return count;
}

// statm's second number: resident pages (proc(5)).
double resident_bytes() {
    std::uint64_t size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void add_process_metrics(MetricFamilies& all) {
    auto cpu = Family::counter("process_cpu_seconds_total",
                               "User and system time that this process took.");
    auto memory = Family::gauge("process_resident_memory_bytes", "Resident memory.");
    auto open = Family::gauge("process_open_fds", "Open file descriptors.");
    auto most = Family::gauge("process_max_fds", "The limit of open file descriptors.");
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0)
        cpu.add({}, seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    memory.add({}, resident_bytes());
    open.add({}, open_descriptors());
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) most.add({}, limit.rlim_cur);
    move_all(all, {&cpu, &memory, &open, &most});
}

}  // namespace vfmgr
