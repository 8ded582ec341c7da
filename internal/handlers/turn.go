package handlers

// takeTurn waits for the end of the call in progress. It reports false, and does not take the turn, if stop closes
// before, or if only one goroutine calls the handler.
func (h *handler) takeTurn(stop <-chan struct{}) bool {
	if h.turn == nil {
		return false
	}
	select {
	case h.turn <- struct{}{}:
		return true
	case <-stop:
		return false
	}
}

func (h *handler) releaseTurn() { <-h.turn }
