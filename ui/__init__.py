"""The frame, the address, the pickers, the browser components: the only home of session state."""
