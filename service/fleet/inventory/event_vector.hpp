// SPDX-License-Identifier: Apache-2.0
// How far a reader of the fleet's events has come, on each host: the id of the fleet's event
// stream, which every replica understands. A value; any thread.
//
// As text: a letter for the form, then in base64url (RFC 4648, 5, without padding) for each host,
// by number: how much greater its number is than the one before, and the number of the last event
// that the reader has; each as a varint of 7 bits a byte, the lowest first. At the end, 4 bytes of
// checksum, which finds mistakes and keeps nothing secret. 1,000 hosts with 10 million events each
// take 6,673 characters, and a header of a request has room for 16 KiB (http::Limits).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/types/problem.hpp"

namespace vfmgr::fleet {

inline constexpr std::size_t vector_hosts_max = 4096;

class EventVector {
  public:
    // Accepts what text() returned, of any replica, and nothing else.
    [[nodiscard]] static Result<EventVector> parse(std::string_view text);
    [[nodiscard]] std::string text() const;

    // The number of the last event that the reader has of the host; nullopt: it never had any.
    [[nodiscard]] std::optional<std::uint64_t> at(std::uint32_t host) const;
    void put(std::uint32_t host, std::uint64_t number);
    void erase(std::uint32_t host);
    // By host's number.
    [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint64_t>> const& places() const {
        return places_;
    }
    bool operator==(EventVector const&) const = default;

  private:
    std::vector<std::pair<std::uint32_t, std::uint64_t>> places_;
};

}  // namespace vfmgr::fleet
