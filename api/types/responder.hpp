// SPDX-License-Identifier: Apache-2.0
// The responder of another host (api/openapi-responder.yaml): how to reach it, what it reports
// about itself, what it is asked to do. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/guest.hpp"
#include "api/types/host_port.hpp"
#include "api/types/json_fwd.hpp"

namespace vfmgr {

inline constexpr std::uint16_t responder_tls_port = 8473;

// Read only: the token is never written anywhere.
struct ResponderTarget {
    HostPort place{"", responder_tls_port};
    std::string fingerprint;  // SHA-256 of its certificate, hex
    std::string token;
    bool operator==(ResponderTarget const&) const = default;
};

struct ResponderInfo {
    std::string version;
    IpAddress address;  // that is tested against
    std::uint16_t echo_port = 0;
    std::optional<MacAddress> mac;  // of its netdev; absent if that has no 6-byte address
    std::uint32_t mtu = 1500;
    std::string rdma_device;
    bool operator==(ResponderInfo const&) const = default;
};

// The terms of one run, as known to the host that attaches the VF.
struct RunTerms {
    std::string attachment;
    std::string run;
    std::string nonce;
    IpAddress peer_address;  // the VF's
    std::uint32_t mtu = 1500;
    RdmaMode rdma = RdmaMode::auto_;     // none: the network excludes RDMA, only IP is tested
    std::optional<std::uint8_t> dscp{};  // for the RDMA tests, 0..63; absent: 0
    std::optional<TestPath> path;        // absent: unknown
    Profile profile = Profile::default_;
    std::uint32_t vf_tx_rate_mbps = 0;  // the VF's send limit; 0: none, or unknown
    bool operator==(RunTerms const&) const = default;
};

// What a trusted caller lets one guest do in one run: a SessionPermit without what the responder
// knows itself.
struct RemotePermit : RunTerms {
    std::optional<MacAddress> vf_mac;  // the only MAC that may have `peer_address`
    bool operator==(RemotePermit const&) const = default;
};

struct SessionOpening {
    RemotePermit permit;
    SessionRequest request;
    bool operator==(SessionOpening const&) const = default;
};

extern template void Json<ResponderTarget>::read(JsonReader&, ResponderTarget&);
extern template struct Json<ResponderInfo>;
extern template struct Json<RemotePermit>;
extern template struct Json<SessionOpening>;

}  // namespace vfmgr
