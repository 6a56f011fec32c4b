// SPDX-License-Identifier: Apache-2.0
// One netlink conversation with the kernel: requests out, answers or an ACK back, with a deadline.
// Owned by one thread at a time; cheap to open, so open one where it is used.
#pragma once

#include <netlink/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "api/os/event.hpp"
#include "api/types/time.hpp"
#include "vfmgr/netlink/nl_request.hpp"

namespace vfmgr {

struct NlSocketFreed {
    void operator()(nl_sock* socket) const noexcept { nl_socket_free(socket); }
};
using NlSocketHandle = std::unique_ptr<nl_sock, NlSocketFreed>;

enum class NlProtocol { route, rdma, netfilter, generic };

// The kernel's verdict on one request.
struct NlAck {
    int error = 0;     // errno; 0: done
    std::string text;  // the extended ACK's sentence, empty when the kernel sent none
    [[nodiscard]] bool ok() const { return error == 0; }
    bool operator==(NlAck const&) const = default;
};

// One message of an answer, without its nlmsghdr.
struct NlAnswer {
    std::uint16_t type = 0;
    std::uint16_t flags = 0;
    std::uint32_t sequence = 0;
    std::vector<std::byte> payload;
};

struct NlReply {
    NlAck ack;
    std::vector<NlAnswer> answers;
};

class NlSocket {
  public:
    [[nodiscard]] static Result<NlSocket> open(NlProtocol protocol);

    // An Error only when there is no verdict: deadline passed, socket broken. `call` names the
    // request in it, as strace would: "RTM_SETLINK enp1s0".
    [[nodiscard]] Result<NlReply> ask(NlRequest request, std::string const& call,
                                      Deadline deadline);
    // The same for a change, where only the verdict counts.
    [[nodiscard]] Result<NlAck> request(NlRequest request, std::string const& call,
                                        Deadline deadline);
    // Dumps, and repeats the dump while the kernel reports that the data changed under the reader.
    [[nodiscard]] Result<std::vector<NlAnswer>> dump(NlRequest request, std::string const& call,
                                                     Deadline deadline);

  private:
    explicit NlSocket(NlSocketHandle handle) : handle_(std::move(handle)) {}
    [[nodiscard]] int fd() const;
    [[nodiscard]] Result<NlReply> exchange(NlRequest& request, int more_flags,
                                           std::string const& call, Deadline deadline);

    NlSocketHandle handle_;
};

// The kernel's refusal as an Error: "<detail>: <its reason>", with call and errno as cause.
[[nodiscard]] Error nl_refusal(NlAck const& ack, std::string call, std::string detail,
                               std::string remedy);

// --- parsing, apart from sockets so that tests and fuzzers reach it ---

[[nodiscard]] std::vector<NlAnswer> split_messages(ByteView datagram);
// Parses the payload of NLMSG_ERROR or NLMSG_DONE.
[[nodiscard]] NlAck parse_ack(NlAnswer const& answer);

}  // namespace vfmgr
