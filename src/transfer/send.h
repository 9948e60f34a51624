#pragma once
// An object's bytes into an HTTP answer: small ones with the head in one write, files by sendfile, everything
// else through a pool chunk. A GET cannot take back its head, so an error after it is returned as such and
// the server cuts the connection short of Content-Length.

#include "base/buffer_pool.h"
#include "http/server.h"
#include "object/store.h"

namespace reelway::transfer {

/// Sends `head` with content_length = the reader's length, and the bytes. Before anything was sent an error
/// is the caller's to answer (busy: no chunk within `patience`); exchange.status_sent() tells.
async::Task<void> send_reader(http::Exchange& exchange, base::HttpResponseHead head, object::Reader& reader,
                              base::BufferPool& pool, base::Duration patience);

}  // namespace reelway::transfer
