"""Values already reduced to screen size -> Plotly figures; no Streamlit, no page, no session."""
