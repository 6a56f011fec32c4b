// SPDX-License-Identifier: Apache-2.0
// Lets the fleet that this host is a member of in: its CA among those that the TLS listener
// accepts, and the identity of its replicas. Follows what is stored. Owned by run(); any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/types/fleet.hpp"
#include "service/auth/authenticate.hpp"

namespace vfmgr {

class FleetAccess {
  public:
    // `ca_file`: where the CA is written for the TLS listener, and removed without a fleet.
    explicit FleetAccess(std::string ca_file) : ca_file_(std::move(ca_file)) {}

    // Takes over the membership, and has the listener that serves go on with it. Cheap when nothing
    // has changed. What fails is logged, and tried again at the next call; until then no fleet is
    // let in.
    void follow(std::optional<FleetMembership> const& membership);
    // Null: no fleet is let in.
    [[nodiscard]] std::shared_ptr<FleetTrust const> trust() const;

    // Returns the files of a TLS listener with the fleet's CA among them. `server`, which outlives
    // this, is served with them from now on: a later change renews it.
    [[nodiscard]] http::TlsListen files_to_serve(http::TlsListen files, http::Server& server);

    // Of the certificate that is served: its key, by which a fleet pins this host. Absent: none is
    // served, or it can't be read.
    [[nodiscard]] std::optional<std::string> public_key() const;

    void note_contact(Time at);
    // When a replica was here last; absent: not since the start, or since this host joined.
    [[nodiscard]] std::optional<Time> contacted_at() const;

  private:
    [[nodiscard]] Result<void> apply(std::optional<FleetMembership> const& membership);
    [[nodiscard]] http::TlsListen with_ca(http::TlsListen files) const;

    std::string const ca_file_;
    mutable std::mutex mutex_;  // guards the members below
    std::shared_ptr<FleetTrust const> trust_;
    std::string ca_;      // that is in the file; empty: there is no file
    bool begun_ = false;  // follow() was called
    std::optional<Time> contacted_at_;
    std::optional<http::TlsListen> files_;
    http::Server* server_ = nullptr;
};

}  // namespace vfmgr
