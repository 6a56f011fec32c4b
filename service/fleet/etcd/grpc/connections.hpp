// SPDX-License-Identifier: Apache-2.0
// Connections to the members of etcd: one is used at a time, and another member when it fails.
// Internal to etcd/. Owned by the client; any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "service/fleet/etcd/grpc_etcd.hpp"

namespace vfmgr::fleet {

// A point of gRPC's clock: the steady one, so that a change of the wall clock ends no call.
[[nodiscard]] gpr_timespec grpc_time(Deadline deadline);

struct Connection {
    std::shared_ptr<grpc::Channel> channel;
    std::string endpoint;  // "10.0.0.1:2379"
};

class Connections {
  public:
    // `endpoints` are HOST:PORT, at least one.
    Connections(EtcdMembers settings, std::vector<std::string> endpoints, bool encrypted);

    // Returns one that is connected. Tries each member once, beginning with the last that worked;
    // fails with unavailable, with a cause for each.
    [[nodiscard]] Result<Connection> get(Deadline deadline);
    // The next get() returns another, unless somebody else has said so before.
    void failed(Connection const& connection);
    // One of its own, which need not be the one in use.
    [[nodiscard]] Result<Connection> get_to(std::string const& endpoint, Deadline deadline) const;
    [[nodiscard]] std::vector<std::string> const& endpoints() const { return endpoints_; }

  private:
    [[nodiscard]] Result<Connection> current();
    [[nodiscard]] Result<Connection> open(std::string const& endpoint) const;
    [[nodiscard]] Result<void> await(Connection const& connection, Deadline deadline) const;
    [[nodiscard]] Error refused(Connection const& connection) const;

    EtcdMembers const settings_;
    bool const encrypted_;
    std::vector<std::string> const endpoints_;  // shuffled: the replicas spread over the members
    std::mutex mutex_;                          // guards the members below
    std::size_t index_ = 0;
    Connection current_;      // its channel may be null
    bool connected_ = false;  // current_ has been ready: it is not waited for again
};

}  // namespace vfmgr::fleet
