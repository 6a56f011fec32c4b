// SPDX-License-Identifier: Apache-2.0
// perftest's server with a TCP set-up (verification.md, 5.3): ib_write_bw, ib_read_bw, ib_read_lat,
// and with the right terms ib_send_bw, ib_send_lat, ib_write_lat. The client says a thing, the
// server answers with one as long, until the client goes. One thread: the conversation's.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "guest-tools/stock/lines.hpp"
#include "guest-tools/stock/share.hpp"
#include "guest-tools/stock/tcp_stream.hpp"
#include "guest-tools/stock/terms.hpp"
#include "guest-tools/verify/host_stream.hpp"

namespace vfmgr::stock {

class Perftest {
  public:
    // `begin_test` is asked before the first queue pair is made.
    Perftest(TcpStream& client, Terms const& terms, Shares& shares,
             std::function<Result<void>()> begin_test)
        : client_(client), terms_(terms), shares_(shares), begin_test_(std::move(begin_test)) {}

    // `version`: the client's first message. Until the client has gone.
    [[nodiscard]] Result<void> serve(std::string version, Deadline handshake);

  private:
    // A queue pair of the client's, and ours.
    struct Pair {
        Shares::Share share;
        std::uint32_t client = 0;  // its number
        std::unique_ptr<verify::HostStream> stream;
        std::string answer;
        bool connected = false;  // the client's end
    };
    [[nodiscard]] Result<void> agree(std::string const& version, Deadline handshake);
    [[nodiscard]] Result<void> answer_line(std::string const& line, Deadline deadline);
    [[nodiscard]] Result<Pair*> pair_of(PerftestLine const& line);
    [[nodiscard]] Result<Pair> open(PerftestLine const& line) const;
    // How much memory one queue pair has behind it.
    [[nodiscard]] std::uint32_t bytes_of_a_pair() const;
    [[nodiscard]] Result<void> check_size() const;

    TcpStream& client_;
    Terms const& terms_;
    Shares& shares_;
    std::function<Result<void>()> begin_test_;
    std::uint32_t page_bytes_ = 0;   // of the client's memory
    std::uint32_t path_mtu_ = 1024;  // bytes, of both ends
    std::vector<Pair> pairs_;
};

}  // namespace vfmgr::stock
