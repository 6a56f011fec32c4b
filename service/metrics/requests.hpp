// SPDX-License-Identifier: Apache-2.0
// Counts an API's answers for Prometheus, for each endpoint. Any thread.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace vfmgr {

struct Endpoint;

class AnsweredRequests {
  public:
    // Outlived by the registry.
    explicit AnsweredRequests(prometheus::Registry& registry);
    // `endpoint` is null where there is none for the path and the method. It outlives this.
    void count(Endpoint const* endpoint, std::string const& method, unsigned status);

  private:
    prometheus::Family<prometheus::Counter>& requests_;
    // prometheus-cpp looks a series up by all of its labels, and every request would wait for that.
    std::mutex mutex_;
    std::map<std::pair<Endpoint const*, unsigned>, prometheus::Counter*> by_endpoint_;  // mutex_
};

// The version of the program that answers, "vfmgrd", as a series of that registry.
void add_build_info(prometheus::Registry& registry, std::string const& program);

}  // namespace vfmgr
