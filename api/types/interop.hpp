// SPDX-License-Identifier: Apache-2.0
// The host's end for interop clients (rping, ibv_rc_pingpong, perftest), requested with PUT
// /v1/attachments/{id}/interop for one guest and a limited time. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/ip_address.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// The ports that those clients use by default.
inline constexpr std::uint16_t perftest_port = 18515;  // TCP; also ibv_rc_pingpong's
inline constexpr std::uint16_t rping_port = 7174;      // RDMA CM's, not TCP's: inside UDP 4791

// What the host does for perftest; as the StreamKind of the same name.
enum class InteropTest { one_sided, send, send_echo, write_echo };
template <>
inline constexpr std::array<EnumName<InteropTest>, 4> enum_names<InteropTest> = {
    {{InteropTest::one_sided, "one_sided"},
     {InteropTest::send, "send"},
     {InteropTest::send_echo, "send_echo"},
     {InteropTest::write_echo, "write_echo"}}};

// perftest sends its server neither the kind of test nor the message length, and expects both ends
// to be started with the same options.
struct InteropRequest {
    std::uint32_t seconds = 600;                // 1..3600
    InteropTest test = InteropTest::one_sided;  // what perftest measures
    std::uint32_t message_bytes = 8 << 20;      // the longest; for write_echo: exactly this
    bool operator==(InteropRequest const&) const = default;
};

struct InteropWindow {
    std::string attachment;
    IpAddress address;  // that the clients connect to
    InteropTest test = InteropTest::one_sided;
    std::uint32_t message_bytes = 0;
    Time open_until{};
    std::vector<std::string> commands;  // that work in the VM now
    std::string rping;                  // why rping is not served; empty: it is served
    std::uint64_t served = 0;           // clients that reached their test
    std::uint64_t refused = 0;          // clients that did not
    bool operator==(InteropWindow const&) const = default;
};

extern template struct Json<InteropRequest>;
extern template struct Json<InteropWindow>;

}  // namespace vfmgr
