// SPDX-License-Identifier: Apache-2.0
// perftest's server with a TCP set-up (guest-tools/verify/RDMA.md#perftest): ib_write_bw,
// ib_read_bw, ib_read_lat, and with the right terms ib_send_bw, ib_send_lat, ib_write_lat. The
// server answers each message of the client with one of the same length, until the client
// disconnects. One thread: the conversation's.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "guest-tools/interop/lines.hpp"
#include "guest-tools/interop/share.hpp"
#include "guest-tools/interop/tcp_stream.hpp"
#include "guest-tools/interop/terms.hpp"
#include "guest-tools/verify/host_stream.hpp"

namespace vfmgr::interop {

class Perftest {
  public:
    // `begin_test` is called before the first queue pair is created.
    Perftest(TcpStream& client, Terms const& terms, Shares& shares,
             std::function<Result<void>()> begin_test)
        : client_(client), terms_(terms), shares_(shares), begin_test_(std::move(begin_test)) {}

    // `version`: the client's first message. Returns when the client has disconnected.
    [[nodiscard]] Result<void> serve(std::string version, Deadline handshake);

  private:
    // A queue pair of the client's, and this server's end of it.
    struct Pair {
        Shares::Share share;
        std::uint32_t client = 0;  // its queue pair number
        std::unique_ptr<verify::HostStream> stream;
        std::string answer;
        bool connected = false;  // the client's end
    };
    [[nodiscard]] Result<void> agree(std::string const& version, Deadline handshake);
    [[nodiscard]] Result<void> answer_line(std::string const& line, Deadline deadline);
    [[nodiscard]] Result<Pair*> pair_of(PerftestLine const& line);
    [[nodiscard]] Result<Pair> open(PerftestLine const& line) const;
    // The memory behind one queue pair, in bytes.
    [[nodiscard]] std::uint32_t bytes_of_a_pair() const;
    [[nodiscard]] Result<void> check_size() const;

    TcpStream& client_;
    Terms const& terms_;
    Shares& shares_;
    std::function<Result<void>()> begin_test_;
    std::uint32_t page_bytes_ = 0;   // of the client's memory
    std::uint32_t path_mtu_ = 1024;  // bytes, for both ends
    std::vector<Pair> pairs_;
};

}  // namespace vfmgr::interop
