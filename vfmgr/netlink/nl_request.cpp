// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/nl_request.hpp"

#include <netlink/attr.h>

namespace vfmgr {

NlRequest::NlRequest(std::uint16_t type, int flags, std::size_t bytes_max)
    : message_(nlmsg_alloc_size(bytes_max)), complete_(message_ != nullptr) {
    if (!complete_) return;
    nlmsg_hdr(get())->nlmsg_type = type;
    nlmsg_hdr(get())->nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK);
}

NlRequest& NlRequest::append(ByteView bytes) {
    // nlmsg_append only reads, its parameter is not const.
    auto* const data = const_cast<std::byte*>(bytes.data());
    complete_ = complete_ && nlmsg_append(get(), data, bytes.size(), 4) == 0;
    return *this;
}

NlRequest& NlRequest::put_text(int type, std::string_view text) {
    std::string const terminated(text);
    return put_bytes(type, std::as_bytes(std::span(terminated.c_str(), terminated.size() + 1)));
}

NlRequest& NlRequest::put_bytes(int type, ByteView bytes) {
    complete_ =
        complete_ && nla_put(get(), type, static_cast<int>(bytes.size()), bytes.data()) == 0;
    return *this;
}

NlRequest& NlRequest::put_ip(int type, IpAddress const& address) {
    return put_bytes(type, std::as_bytes(std::span(address.octets).first(address.bits() / 8)));
}

nlattr* NlRequest::begin(int type) {
    auto* const start = complete_ ? nla_nest_start(get(), type) : nullptr;
    complete_ = start != nullptr;
    return start;
}

void NlRequest::end(nlattr* start) {
    if (complete_) nla_nest_end(get(), start);
}

}  // namespace vfmgr
