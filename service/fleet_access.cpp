// SPDX-License-Identifier: Apache-2.0
#include "service/fleet_access.hpp"

#include <filesystem>

#include "api/http/ca_pem.hpp"
#include "api/os/file.hpp"
#include "service/log.hpp"

namespace vfmgr {

void FleetAccess::follow(std::optional<FleetMembership> const& membership) {
    std::lock_guard const lock(mutex_);
    bool const same = membership
                          ? trust_ && trust_->fleet == membership->fleet && ca_ == membership->ca
                          : begun_ && !trust_ && ca_.empty();
    begun_ = true;
    if (same) return;
    trust_.reset();
    contacted_at_.reset();
    if (auto const done = apply(membership); !done)
        log(Severity::error, "the fleet is not let in",
            {{"detail", detail_with_causes(done.error())}, {"remedy", done.error().remedy}});
}

// Connections by a CA that is no longer trusted end with the listener's renewal; those of a fleet
// that was left, by their principal.
Result<void> FleetAccess::apply(std::optional<FleetMembership> const& membership) {
    std::shared_ptr<FleetTrust const> trust;
    if (membership) {
        VFMGR_TRY(auto const authority, http::ca_fingerprint(membership->ca));
        auto written = replace_file(ca_file_, membership->ca, 0644);
        if (!written) {
            written.error().remedy = "make state_dir in vfmgr.toml writable for vfmgrd";
            return written;
        }
        trust = std::make_shared<FleetTrust const>(FleetTrust{membership->fleet, authority});
        ca_ = membership->ca;
    } else {
        std::error_code ignored;
        std::filesystem::remove(ca_file_, ignored);
        ca_.clear();
    }
    if (server_) {
        VFMGR_CHECK(server_->renew(with_ca(*files_)));
        server_->cut(http::lapsed);
    }
    trust_ = std::move(trust);
    return {};
}

std::shared_ptr<FleetTrust const> FleetAccess::trust() const {
    std::lock_guard const lock(mutex_);
    return trust_;
}

http::TlsListen FleetAccess::with_ca(http::TlsListen files) const {
    if (!ca_.empty()) files.fleet_ca_file = ca_file_;
    return files;
}

http::TlsListen FleetAccess::files_to_serve(http::TlsListen files, http::Server& server) {
    std::lock_guard const lock(mutex_);
    files_ = std::move(files);
    server_ = &server;
    return with_ca(*files_);
}

std::optional<std::string> FleetAccess::public_key() const {
    std::lock_guard const lock(mutex_);
    if (!files_) return std::nullopt;
    auto key = http::public_key_of(files_->certificate_file);
    return key ? std::optional(std::move(*key)) : std::nullopt;
}

void FleetAccess::note_contact(Time at) {
    std::lock_guard const lock(mutex_);
    contacted_at_ = at;
}

std::optional<Time> FleetAccess::contacted_at() const {
    std::lock_guard const lock(mutex_);
    return contacted_at_;
}

}  // namespace vfmgr
