// SPDX-License-Identifier: Apache-2.0
// The host's end for clients that are not ours (rping, ibv_rc_pingpong, perftest): asked for with
// PUT /v1/attachments/{id}/stock-clients, for one guest and a limited time. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/ip_address.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// The ports that those clients call by default.
inline constexpr std::uint16_t perftest_port = 18515;  // TCP; ibv_rc_pingpong's, too
inline constexpr std::uint16_t rping_port = 7174;      // of RDMA CM, inside of RoCE's

// What the host does for perftest: as the StreamKind of the same name.
enum class StockTest { one_sided, send_sink, send_echo, write_echo };
template <>
inline constexpr std::array<EnumName<StockTest>, 4> enum_names<StockTest> = {
    {{StockTest::one_sided, "one_sided"},
     {StockTest::send_sink, "send_sink"},
     {StockTest::send_echo, "send_echo"},
     {StockTest::write_echo, "write_echo"}}};

// perftest tells its server neither what it measures nor how long its messages are, and expects
// both ends to have been given the same options.
struct StockRequest {
    std::uint32_t seconds = 600;            // 1..3600
    StockTest test = StockTest::one_sided;  // what perftest measures
    std::uint32_t message_bytes = 8 << 20;  // the longest; of write_echo: exactly
    bool operator==(StockRequest const&) const = default;
};

struct StockClients {
    std::string attachment;
    IpAddress address;  // whom the clients call
    StockTest test = StockTest::one_sided;
    std::uint32_t message_bytes = 0;
    Time open_until{};
    std::vector<std::string> commands;  // that work in the VM now
    std::string rping;                  // why rping is not served; empty: it is
    std::uint64_t served = 0;           // clients that came to their test
    std::uint64_t refused = 0;          // and those that did not
    bool operator==(StockClients const&) const = default;
};

class JsonReader;
void to_json(nlohmann::json& out, StockRequest const& request);
void read(JsonReader& reader, StockRequest& request);
void to_json(nlohmann::json& out, StockClients const& clients);
void read(JsonReader& reader, StockClients& clients);

}  // namespace vfmgr
